import t from 'tap';
import type { ConfigTree } from '../../support/proxy-process.js';
import { dpop, told, shown, place, free, front, accepting, revoked, binding, application } from './half-edits.js';
import { reloading } from './reloading.js';

interface Step {
  readonly config: ConfigTree;
  readonly isTaken: boolean;
}

const sequences: readonly { readonly name: string; readonly steps: readonly [ConfigTree, ...Step[]] }[] = [
  {
    name: 'what is refused in force already keeps no edit out',
    steps: [
      { decide: front, routes: [free] },
      { config: { decide: front, routes: [place] }, isTaken: true },
      { config: { decide: accepting, routes: [place] }, isTaken: true },
      { config: { decide: accepting, routes: [place], revoked }, isTaken: true },
    ],
  },
  {
    name: 'a write that was reserved at the start, and not meanwhile',
    steps: [
      { decide: front, routes: [place] },
      { config: { decide: front, routes: [free] }, isTaken: true },
      { config: { decide: accepting, routes: [place] }, isTaken: false },
      { config: { decide: accepting, routes: [free], revoked }, isTaken: true },
      { config: { decide: accepting, routes: [place], revoked }, isTaken: false },
    ],
  },
  {
    name: 'tokens that had to be bound at the start, and not meanwhile',
    steps: [
      binding('require'),
      { config: binding('accept'), isTaken: true },
      { config: { ...binding('require'), listen: { dpop } }, isTaken: false },
      { config: { ...binding('accept'), listen: { dpop } }, isTaken: true },
      { config: { ...binding('require'), listen: { dpop } }, isTaken: false },
      { config: binding('require'), isTaken: true },
      { config: { ...binding('require'), listen: { dpop } }, isTaken: true },
    ],
  },
  {
    name: 'a route that asked for certificates before, under another name',
    steps: [
      { routes: [free] },
      { config: { ...told, routes: [free, shown] }, isTaken: true },
      { config: { ...told, routes: [free, { ...shown, name: 'new' }] }, isTaken: true },
      { config: { ...told, routes: [free, { ...shown, client_certificates: ['CN=b'] }] }, isTaken: true },
    ],
  },
];

t.test('an edit is compared with what is in force, not with the start', async (t) => {
  for (const { name, steps } of sequences) {
    const [first, ...edits] = steps;
    const reload = await reloading(first);
    for (const [index, { config, isTaken }] of edits.entries()) {
      const error = await reload(config);
      t.equal(error === null, isTaken, `${name}: edit ${String(index + 1)}: ${JSON.stringify(error)}`);
    }
  }
});

t.test('an application reloads what a decide listener would have to accept', async (t) => {
  const first = { decide: front, routes: [free] };
  const wanted = { decide: accepting, routes: [place] };
  t.not(await (await reloading(first))(wanted), null);
  t.equal(await (await reloading(first, application(false)))(wanted), null);
});
