import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Scope } from '../support/scope.js';
import { startServe, type ServeProcess } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { baseConfig } from '../support/proxy-process.js';

/**
 * Runs `serve`, which gets these signals while its program is still being loaded: from the hook that finds its files.
 */
function signalledEarly(t: Scope, ...signals: readonly NodeJS.Signals[]): ServeProcess {
  const kills = signals.map((signal) => `process.kill(process.pid, '${signal}');`).join('');
  const hooks = `export async function resolve(name, context, next) { if (name.endsWith('/program.js')) { ${kills} } return next(name, context); }`;
  const preloaded = `import { register } from 'node:module'; register(${JSON.stringify(moduleOf(hooks))});`;
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(file, baseConfig({ shutdown: { delay: '0s', grace: '1s' } }));
  return startServe(t, file, { env: { NODE_OPTIONS: `--import=${moduleOf(preloaded)}` } });
}

function moduleOf(text: string): string {
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

t.test('SIGHUP while serve is being loaded reads the config again, once it runs', async (t) => {
  const serve = signalledEarly(t, 'SIGHUP');
  await serve.port('proxy');
  await until('it was reloaded', () =>
    serve.logs().some(({ msg }) => msg === 'the config was reloaded: nothing in it is different'),
  );
  t.ok(serve.isRunning());
});

t.test('SIGUSR1 and SIGUSR2, early and later, neither end serve nor open the debugger', async (t) => {
  const serve = signalledEarly(t, 'SIGUSR1', 'SIGUSR2');
  await serve.port('proxy');
  serve.signal('SIGUSR1');
  serve.signal('SIGUSR2');
  serve.signal('SIGHUP');
  await until('it was reloaded', () =>
    serve.logs().some(({ msg }) => msg === 'the config was reloaded: nothing in it is different'),
  );
  t.ok(serve.isRunning());
  t.notMatch(serve.output(), /Debugger listening/);
});

t.test('SIGTERM while serve is being loaded ends it in order', async (t) => {
  const serve = signalledEarly(t, 'SIGTERM');
  t.same(await serve.exited, { code: 0, signal: null });
  t.match(
    serve
      .logs()
      .map(({ msg }) => msg)
      .at(-1),
    'stopped',
  );
});
