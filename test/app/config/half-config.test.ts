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
import { baseConfig } from '../../support/proxy-process.js';
import { startInProcessProxy, startFrom, type InProcessProxy } from '../in-process-proxy.js';

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

async function admin(proxy: InProcessProxy): Promise<number> {
  return (await proxy.request({ path: '/orders/admin' })).status;
}

t.test('an edit in place that pauses half-way never puts its half in force, SIGHUP or not', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { routes, receiver, reload: { least_age: '2s' } } });
  const whole = readFileSync(proxy.configFile, 'utf8');
  t.equal(await admin(proxy), 403);
  writeFileSync(proxy.configFile, halfOf(whole));
  const reloaded = proxy.app.reload();
  const line = await until('it is said that it waits', () => proxy.logs().find(({ msg }) => msg === waits));
  t.match(line, { level: 'info', config: 'sallyport.yaml', least_age_ms: 2_000 });
  await seenBySomebodyElse(t, proxy.configFile);
  t.equal(await admin(proxy), 403);
  writeFileSync(proxy.configFile, `${whole}# edited\n`);
  await reloaded;
  t.equal(await admin(proxy), 403);
  t.same(proxy.app.status().counts.config_reloads, { ok: 1, failed: 0 }, 'only the whole one was taken');
  t.equal(proxy.logs().filter(({ msg }) => msg === waits).length, 1, 'it is said once');
});

t.test('what is put in force is the text that was confirmed, whatever the file holds by then', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { routes, receiver } });
  const confirmed = `${readFileSync(proxy.configFile, 'utf8')}# confirmed\n`;
  let tell: (text: Result<string, string>) => void = () => undefined;
  const file = fileSource(proxy.configFile);
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
  const proxy = await startInProcessProxy(t, { config: { routes, receiver, reload: { least_age: '1m' } } });
  await proxy.app.reload();
  t.equal(proxy.app.status().counts.config_reloads.ok, 1);
  t.notOk(proxy.logs().some(({ msg }) => msg === waits));
});

t.test('where the end marker is required, a config without it is neither started with nor taken', async (t) => {
  const reload = { end_marker: 'required', least_age: '0s' };
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(file, baseConfig({ reload }));
  const { started } = await startFrom(t, file);
  const problem =
    /the config does not end with a line \.\.\., so it may not be whole; reload\.end_marker asks for it; allowed: \.\.\. as the last line$/;
  t.match(started, { ok: false, error: { kind: 'invalid', messages: [problem] } });

  const proxy = await startInProcessProxy(t, { config: { routes, receiver, reload: { least_age: '0s' } } });
  const plain = readFileSync(proxy.configFile, 'utf8');
  const whole = `${plain.replace('least_age: 0s', 'least_age: 0s\n  end_marker: required')}...\n`;
  writeFileSync(proxy.configFile, whole);
  await proxy.app.reload();
  t.equal(proxy.app.status().counts.config_reloads.ok, 1);
  for (const text of [halfOf(plain), halfOf(whole), `${whole.trimEnd().slice(0, -1)}\n`, plain]) {
    writeFileSync(proxy.configFile, text);
    await proxy.app.reload();
    t.match(
      proxy.app.status().config.last_reload_error?.problems.join(' '),
      /the config in force asks for it|end_marker asks for it|malformed/,
    );
    t.equal(await admin(proxy), 403);
  }
  t.equal(proxy.app.status().counts.config_reloads.failed, 4);
  t.match(
    proxy.app.status().config.last_reload_error?.problems,
    [/so it may not be whole; the config in force asks for it/],
    'though the new one does not',
  );
  writeFileSync(proxy.configFile, `${plain}...\n`);
  await proxy.app.reload();
  writeFileSync(proxy.configFile, plain);
  await proxy.app.reload();
  t.same(
    proxy.app.status().counts.config_reloads,
    { ok: 3, failed: 4 },
    'taken back by a whole config, it is asked for no more',
  );
});
