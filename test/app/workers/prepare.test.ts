/** A worker that fails to take a config has not taken it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { fileSource } from '../../../src/app/config/config-source.js';
import { loadComplete } from '../../../src/app/config/load-complete.js';
import type { ToPrimary, ToWorker } from '../../../src/app/workers/messages.js';
import { startPrimary } from '../../../src/app/workers/primary.js';
import { runWorker } from '../../../src/app/workers/worker.js';
import { baseConfig } from '../../support/proxy-process.js';
import { replaceFile } from '../../support/replace-file.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';

const places = { listen: { port: 0 }, admin: { port: 0 }, workers: 1 };

/** What a program does that is asked to get ready. */
const rows: readonly { name: string; prepare: string; log: string }[] = [
  {
    name: 'one that fails at it and goes on refuses the config for all',
    prepare: "process.send({ kind: 'failed', id, reason: 'a bug' })",
    log: 'the config was not reloaded; the old one stays in force',
  },
  {
    name: 'one that ends is passed over, and the next one begins with the config',
    prepare: 'process.exit(3)',
    log: 'the config was reloaded',
  },
];

for (const { name, prepare, log } of rows) {
  t.test(name, async (t) => {
    const { file, logs } = await start(t, prepare);
    replaceFile(file, baseConfig({ ...places, log: { level: 'debug' } }));
    await until('it is over', () => logs().some(({ msg }) => String(msg).startsWith('the config was ')));
    t.equal(logs().find(({ msg }) => String(msg).startsWith('the config was '))?.msg, log);
  });
}

async function start(
  t: Scope,
  prepare: string,
): Promise<{ readonly file: string; readonly logs: () => readonly Readonly<Record<string, unknown>>[] }> {
  const folder = tempDir(t);
  const program = join(folder, 'worker.cjs');
  writeFileSync(
    program,
    `process.on('message', ({ id, name }) => {
      if (name === 'prepare') ${prepare};
      else if (name !== undefined) process.send({ kind: 'answer', id, answer: name === 'announce' ? 0 : null });
    });`,
  );
  const file = join(folder, 'sallyport.yaml');
  writeFileSync(file, baseConfig(places));
  const source = fileSource(file, 'sallyport.yaml', 20);
  const first = await loadComplete(source, { env: {} }, localFiles);
  if (!first.ok) throw new Error(first.error.messages.join());
  const lines: string[] = [];
  const started = await startPrimary(first.value, 1, {
    source,
    env: {},
    program,
    watchIntervalMs: 20,
    logTo: { write: (line) => lines.push(line) },
  });
  if (!started.ok) throw new Error(started.error.messages.join());
  t.teardown(started.value.stop);
  return { file, logs: () => lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>) };
}

t.test('a worker puts nothing in force that it has not prepared', async (t) => {
  const told: ToPrimary[] = [];
  let hear = (_message: ToWorker): void => undefined;
  runWorker(
    {
      send: (message) => told.push(message),
      onMessage: (listener) => {
        hear = (message) => listener(message, undefined);
      },
      end: () => undefined,
    },
    {},
  );
  const texts = { config: '', files: new Map<string, string>() };
  hear({ kind: 'call', id: 1, name: 'prepare', given: texts });
  hear({ kind: 'call', id: 2, name: 'conclude', given: true });
  hear({ kind: 'call', id: 3, name: 'conclude', given: false });
  await until('its answers', () => told.length === 3);
  t.match(told, [
    { kind: 'failed', id: 1 },
    { kind: 'answer', id: 2, answer: 'it has not prepared a config' },
    { kind: 'answer', id: 3, answer: null },
  ]);
});
