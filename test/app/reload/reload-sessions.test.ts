import t from 'tap';
import { until } from '../../support/until.js';
import { startProxyProcess, type ConfigTree } from '../../support/proxy-process.js';

const sessions = { core_url: 'http://127.0.0.1:1', api_domain: 'https://api.example.com' };
const routes = [{ name: 'users', methods: ['GET'], path: '/users', accept: ['session'], session: { claims: {} } }];

interface Status {
  readonly config: {
    readonly sha256: string;
    readonly last_reload_error: { readonly problems: readonly string[] } | null;
  };
  readonly restart_needed: readonly string[];
  readonly issuers: readonly { readonly name: string }[];
}

t.test('the first route that accepts sessions waits for a restart; the last one takes nothing along', async (t) => {
  const proxy = await startProxyProcess(t);
  const status = async (): Promise<Status> => JSON.parse((await proxy.admin('/status')).text) as Status;
  const before = await status();
  const reload = (config: ConfigTree): void => {
    proxy.rewrite(config);
    proxy.process.signal('SIGHUP');
  };
  reload({ sessions, routes });
  const refused = await until('the reload is refused', async () => (await status()).config.last_reload_error);
  t.match(refused.problems, [
    /^a route accepts sessions, and what verifies them is opened at start only: restart to put this config in force$/,
  ]);
  t.equal((await status()).config.sha256, before.config.sha256, 'the old config stays in force');
  reload({ sessions });
  await until(
    'sessions that nobody accepts are no matter',
    async () => (await status()).config.last_reload_error === null,
  );
  t.same((await status()).restart_needed, []);

  const withSessions = await startProxyProcess(t, { config: { sessions, routes }, ready: false });
  const own = async (): Promise<Status> => JSON.parse((await withSessions.admin('/status')).text) as Status;
  t.match((await own()).issuers, [{ name: 'core' }, { name: 'sessions' }]);
  const first = (await own()).config.sha256;
  withSessions.rewrite({});
  withSessions.process.signal('SIGHUP');
  await until('no route accepts sessions any more', async () => (await own()).config.sha256 !== first);
  t.match(await own(), { restart_needed: [], config: { last_reload_error: null } });
});
