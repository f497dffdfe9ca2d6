import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { textDigest } from '../../../src/adapters/files/read-file.js';
import { startApp } from '../../../src/app/start.js';
import { fileSource, type ConfigSource } from '../../../src/app/config/config-source.js';
import { accept, type Result } from '../../../src/lib/result.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig } from '../../support/world.js';
import { startAppWorld, startFrom, type AppWorld } from '../app-world.js';

/** The wide route first, the strict one last: half of it lets more through than the whole. */
const routes = [
  { name: 'orders', methods: ['GET'], path: '/orders/**', subjects: ['checkout'], permissions: [] },
  { name: 'admin', methods: ['GET'], path: '/orders/admin', subjects: ['root'], permissions: [] },
];

/** The text up to the strict route: a config of its own. */
function halfOf(text: string): string {
  return text.slice(0, text.indexOf('  - name: admin'));
}

/** What the receiver's router does not take for the same, so that the half is accepted as a config. */
const receiver = { case_sensitive: true, strict_slash: true, format_suffix: false, trailing_dots: false };

const waits = 'the config has changed and counts when it has stayed as it is for a while';

/** Settles once a watch that is slower, and asks for no age, takes the file for changed. */
async function seenBySomebodyElse(t: Scope, path: string): Promise<void> {
  let hasSeen = false;
  const { close } = fileSource(path, path, 100).watch(() => {
    hasSeen = true;
  });
  t.teardown(close);
  await until('another watch takes the half', () => hasSeen);
}

async function admin(world: AppWorld): Promise<number> {
  return (await world.request({ path: '/orders/admin' })).status;
}

t.test('an edit in place that pauses half-way never puts its half in force, SIGHUP or not', async (t) => {
  const world = await startAppWorld(t, { config: { routes, receiver, reload: { least_age: '2s' } } });
  const whole = readFileSync(world.configFile, 'utf8');
  t.equal(await admin(world), 403);
  writeFileSync(world.configFile, halfOf(whole));
  const reloaded = world.app.reload();
  const line = await until('it is said that it waits', () => world.logs().find(({ msg }) => msg === waits));
  t.match(line, { level: 'info', config: 'sallyport.yaml', least_age_ms: 2_000 });
  await seenBySomebodyElse(t, world.configFile);
  t.equal(await admin(world), 403);
  writeFileSync(world.configFile, `${whole}# edited\n`);
  await reloaded;
  t.equal(await admin(world), 403);
  t.same(world.app.status().counts.config_reloads, { ok: 1, failed: 0 }, 'only the whole one was taken');
  t.equal(world.logs().filter(({ msg }) => msg === waits).length, 1, 'it is said once');
});

t.test('what is put in force is the text that was confirmed, whatever the file holds by then', async (t) => {
  const world = await startAppWorld(t, { config: { routes, receiver } });
  const confirmed = `${readFileSync(world.configFile, 'utf8')}# confirmed\n`;
  let tell: (text: Result<string, string>) => void = () => undefined;
  const file = fileSource(world.configFile);
  const source: ConfigSource = {
    ...file,
    watch: (onChange) => {
      tell = onChange;
      return { settled: () => Promise.resolve(accept(`${confirmed}# asked for\n`)), close: () => undefined };
    },
  };
  const started = await startApp({ source, env: {}, logTo: { write: () => undefined } });
  if (!started.ok) throw new Error(started.error.messages.join());
  t.teardown(started.value.stop);
  tell(accept(confirmed));
  await until('it is taken', () => started.value.status().counts.config_reloads.ok === 1);
  t.equal(started.value.status().config.sha256, textDigest(confirmed));
  await started.value.reload();
  t.equal(started.value.status().config.sha256, textDigest(`${confirmed}# asked for\n`));
});

t.test('SIGHUP with a file that did not change waits for nothing', async (t) => {
  const world = await startAppWorld(t, { config: { routes, receiver, reload: { least_age: '1m' } } });
  await world.app.reload();
  t.equal(world.app.status().counts.config_reloads.ok, 1);
  t.notOk(world.logs().some(({ msg }) => msg === waits));
});

t.test('where the end marker is required, a config without it is neither started with nor taken', async (t) => {
  const reload = { end_marker: 'required', least_age: '0s' };
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(file, baseConfig({ reload }));
  const { started } = await startFrom(t, file);
  const problem =
    /the config does not end with a line \.\.\., so it may not be whole; reload\.end_marker asks for it; allowed: \.\.\. as the last line$/;
  t.match(started, { ok: false, error: { kind: 'invalid', messages: [problem] } });

  const world = await startAppWorld(t, { config: { routes, receiver, reload: { least_age: '0s' } } });
  const plain = readFileSync(world.configFile, 'utf8');
  const whole = `${plain.replace('least_age: 0s', 'least_age: 0s\n  end_marker: required')}...\n`;
  writeFileSync(world.configFile, whole);
  await world.app.reload();
  t.equal(world.app.status().counts.config_reloads.ok, 1);
  for (const text of [halfOf(plain), halfOf(whole), `${whole.trimEnd().slice(0, -1)}\n`, plain]) {
    writeFileSync(world.configFile, text);
    await world.app.reload();
    t.match(
      world.app.status().config.last_reload_error?.problems.join(' '),
      /the config in force asks for it|end_marker asks for it|malformed/,
    );
    t.equal(await admin(world), 403);
  }
  t.equal(world.app.status().counts.config_reloads.failed, 4);
  t.match(
    world.app.status().config.last_reload_error?.problems,
    [/so it may not be whole; the config in force asks for it/],
    'though the new one does not',
  );
  writeFileSync(world.configFile, `${plain}...\n`);
  await world.app.reload();
  writeFileSync(world.configFile, plain);
  await world.app.reload();
  t.same(
    world.app.status().counts.config_reloads,
    { ok: 3, failed: 4 },
    'taken back by a whole config, it is asked for no more',
  );
});
