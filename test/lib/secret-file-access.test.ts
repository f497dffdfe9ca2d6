import t from 'tap';
import { exposureOf } from '../../src/lib/secret-file-access.js';

const [root, own, other] = [0, 1000, 2000];

const rows: readonly {
  readonly mode: number;
  readonly owner: number;
  readonly expected: string | null;
  readonly name?: string;
}[] = [
  { mode: 0o600, owner: own, expected: null },
  { mode: 0o400, owner: own, expected: null },
  { mode: 0o700, owner: own, expected: null },
  { mode: 0o000, owner: own, expected: null },
  { mode: 0o711, owner: own, expected: null, name: 'to run a file is not to read it' },
  { mode: 0o604, owner: own, expected: 'every user of this machine may read (mode 0604)' },
  { mode: 0o644, owner: own, expected: 'every user of this machine may read (mode 0644)' },
  { mode: 0o666, owner: own, expected: 'every user of this machine may change (mode 0666)' },
  { mode: 0o602, owner: own, expected: 'every user of this machine may change (mode 0602)' },
  { mode: 0o640, owner: own, expected: 'its group may read (mode 0640)' },
  { mode: 0o660, owner: own, expected: 'its group may change (mode 0660)' },
  { mode: 0o620, owner: own, expected: 'its group may change (mode 0620)' },
  {
    mode: 0o100644,
    owner: root,
    expected: 'every user of this machine may read (mode 0644)',
    name: 'a secret of Kubernetes without defaultMode',
  },
  { mode: 0o100440, owner: root, expected: null, name: 'with defaultMode 0400 and an fsGroup, which adds the group' },
  { mode: 0o100400, owner: root, expected: null },
  { mode: 0o640, owner: root, expected: null, name: 'root:sallyport' },
  { mode: 0o660, owner: root, expected: 'its group may change (mode 0660)' },
  { mode: 0o640, owner: other, expected: null, name: 'who runs this reads it by the group' },
  { mode: 0o644, owner: other, expected: 'every user of this machine may read (mode 0644)' },
  {
    mode: 0o444,
    owner: root,
    expected: 'every user of this machine may read (mode 0444)',
    name: 'a secret of Docker Swarm as it comes',
  },
];

t.test('a secret’s file: who may look into it who should not', (t) => {
  for (const { mode, owner, expected, name } of rows) {
    t.equal(exposureOf({ mode, owner }, own), expected, name ?? `${mode.toString(8)} of ${owner}`);
  }
  t.end();
});

t.test('whoever is root: the group of a file of root’s is meant', (t) => {
  t.equal(exposureOf({ mode: 0o640, owner: root }, root), null, 'as doctor is run by an operator with sudo');
  t.equal(exposureOf({ mode: 0o644, owner: root }, root), 'every user of this machine may read (mode 0644)');
  t.equal(exposureOf({ mode: 0o640, owner: own }, root), null);
  t.end();
});
