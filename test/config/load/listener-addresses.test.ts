import t from 'tap';
import { stringify } from 'yaml';
import { validateConfig } from '../../../src/config/load/validate-config.js';
import { readListenerPlaces, type ListenerPlaces } from '../../../src/config/load/listener-addresses.js';
import { accept, refuse } from '../../../src/lib/result.js';
import { baseConfig } from '../../support/proxy-process.js';

const sources = {
  env: { ADMIN_PORT: '9000', ODD: 'x' },
  readFile: (path: string) => (path === '/host' ? accept('10.0.0.1\n') : refuse('does not exist')),
};

function read(text: string): ListenerPlaces {
  return readListenerPlaces(text, sources);
}

const admin = { host: '127.0.0.1', port: 9901 };

t.test('the places are those of the whole config, wherever that is right', (t) => {
  const rows: readonly Readonly<Record<string, unknown>>[] = [
    { admin: undefined },
    { admin: { host: '127.0.0.1', port: 9000 } },
    { admin: { port: '${env:ADMIN_PORT}' } },
    { admin: { host: '${file:/host}' } },
    { probes: {} },
    { probes: { port: 1 } },
    { admin: { host: '::1', port: 65_535 }, probes: { host: '0.0.0.0', port: 9000 } },
  ];
  for (const tree of rows) {
    const text = baseConfig(tree);
    const { config, problems } = validateConfig(text, { file: 'sallyport.yaml', folder: '/', ...sources });
    if (config === null) throw new Error(JSON.stringify(problems));
    const whole = [config.admin, config.probes]
      .filter((place) => place !== null)
      .map(({ host, port }) => ({ host, port }));
    t.same(read(text), { places: whole, doubts: [] }, stringify(tree));
  }
  t.end();
});

t.test('what else is wrong does not matter', (t) => {
  const place = { host: '127.0.0.2', port: 7 };
  const section = 'admin:\n  host: 127.0.0.2\n  # a comment\n\n  port: 7\n';
  const rows: readonly {
    readonly name: string;
    readonly text: string;
    readonly places: readonly object[];
    readonly isWhole: boolean;
  }[] = [
    { name: 'unknown keys', text: `${section}x: y\n`, places: [place], isWhole: true },
    {
      name: 'a placeholder that stands for nothing',
      text: `${section}upstream: { url: "\${env:NONE}" }\n`,
      places: [place],
      isWhole: true,
    },
    { name: 'a tab above', text: `upstream:\n\turl: x\n${section}`, places: [place], isWhole: false },
    { name: 'a bracket below', text: `${section}routes: [GET\n`, places: [place], isWhole: false },
    {
      name: 'both sections among what is broken',
      text: `a: [\n${section}b: ]\nprobes: { port: 8 }\nc: '`,
      isWhole: false,
      places: [place, { host: '0.0.0.0', port: 8 }],
    },
    { name: 'no section at all', text: 'a: [', places: [admin], isWhole: false },
    {
      name: 'lines that end as on Windows',
      text: `a: [\r\n${section.replaceAll('\n', '\r\n')}`,
      places: [place],
      isWhole: false,
    },
    { name: 'depth without end', text: `${section}deep: ${'['.repeat(20_000)}`, places: [place], isWhole: false },
  ];
  for (const { name, text, places, isWhole } of rows) {
    t.same(read(text), { places, doubts: isWhole ? [] : ['it is no YAML as a whole'] }, name);
  }
  t.end();
});

t.test('what is wrong in the sections themselves is told, and is the default', (t) => {
  const rows: readonly { readonly text: string; readonly doubts: readonly string[] }[] = [
    { text: '', doubts: ['it is no map'] },
    { text: '- a list', doubts: ['it is no map'] },
    { text: 'admin: 9901', doubts: ['admin is no map'] },
    { text: 'admin: { port: x }', doubts: ['admin.port cannot be read'] },
    { text: 'admin: { port: 65536 }', doubts: ['admin.port cannot be read'] },
    { text: 'admin: { port: -1 }', doubts: ['admin.port cannot be read'] },
    { text: 'admin: { port: "${env:NONE}" }', doubts: ['admin.port cannot be read'] },
    {
      text: 'admin: { port: "${env:ODD}", host: [] }',
      doubts: ['admin.host cannot be read', 'admin.port cannot be read'],
    },
    { text: 'admin: { host: "" }', doubts: ['admin.host cannot be read'] },
  ];
  for (const { text, doubts } of rows) t.same(read(text), { places: [admin], doubts }, text);
  t.end();
});
