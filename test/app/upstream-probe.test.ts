import t from 'tap';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { until } from '../support/until.js';
import { startInProcessProxy } from './in-process-proxy.js';

t.test('kubelet reaches the upstream through the probes listener, and only the paths of the config', async (t) => {
  const proxy = await startInProcessProxy(t, {
    config: { probes: { host: '127.0.0.1', port: 0, app: { live: '/healthz', ready: '/ready?deep=1' } } },
  });
  const probes = proxy.app.listeners.probes?.port ?? 0;
  const kubelet = {
    Host: '10.1.2.3:9902',
    'User-Agent': 'kube-probe/1.34',
    Authorization: 'Bearer x',
    'X-Auth-Subject': 'root',
  };
  t.equal((await request(probes, { path: '/app-probe/live', headers: kubelet })).status, 200);
  t.equal((await request(probes, { method: 'HEAD', path: '/app-probe/ready?/admin', headers: kubelet })).status, 200);
  t.same(
    proxy.receiver.requests.map(({ method, target }) => [method, target]),
    [
      ['GET', '/healthz'],
      ['GET', '/ready?deep=1'],
    ],
  );
  for (const name of ['authorization', 'x-auth-subject', 'x-forwarded-for']) {
    t.same(proxy.receiver.requests[0]?.field(name), [], name);
  }

  const refused: readonly { readonly method?: string; readonly path: string; readonly status: number }[] = [
    { path: '/app-probe/other', status: 404 },
    { path: '/app-probe/', status: 404 },
    { path: '/app-probe/live/../../admin', status: 404 },
    { path: '/app-probe/live/x', status: 404 },
    { path: '/app-probe/constructor', status: 404 },
    { method: 'POST', path: '/app-probe/live', status: 405 },
  ];
  for (const { method = 'GET', path, status } of refused) {
    t.equal((await request(probes, { method, path })).status, status, `${method} ${path}`);
  }
  t.equal((await proxy.admin('/app-probe/live')).status, 404, "not on the operators' listener");
  t.equal((await request(proxy.port, { path: '/app-probe/live' })).status, 401, "nor on the callers'");
  t.equal(proxy.receiver.requests.length, 2);

  const moved = await startUpstreamServer(t);
  proxy.rewrite({
    probes: { host: '127.0.0.1', port: 0, app: { live: '/healthz', ready: '/ready?deep=1' } },
    upstream: { url: moved.url },
  });
  await until('the new receiver is asked', async () => {
    await request(probes, { path: '/app-probe/live' });
    return moved.requests.length > 0;
  });
});
