/** From the log of a running `serve` in shadow mode to what it then enforces. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { lineOf } from '../../policy-test/learn/log-lines.js';
import { shopLog } from '../../policy-test/learn/shop.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import { until } from '../../support/until.js';
import { compiled, health, sallyport, shadow } from './run-learn.js';

t.test(
  'the log of a running serve has what is needed, and what is learnt of it is what it then enforces',
  async (t) => {
    const proxy = await startProxyProcess(t, { config: { ...shadow, routes: [health] } });
    const as = (sub: string, permissions: readonly string[]) => proxy.authorization({ sub, permissions });
    const ids = [17, 423, 99, 6_000];
    const traffic = [
      ...ids.map((id) => ({ method: 'GET', path: `/orders/${String(id)}`, headers: as('checkout', ['orders:read']) })),
      ...ids.map(() => ({
        method: 'POST',
        path: '/orders?x=1',
        headers: as('checkout', ['orders:read', 'orders:write']),
      })),
      ...ids.map(() => ({ method: 'GET', path: '/orders/export', headers: as('reporting', ['orders:export']) })),
    ];
    const hostile = [
      ...ids.map((id) => ({ method: 'GET', path: `/orders/${String(id)}`, headers: {} })),
      ...ids.map(() => ({
        method: 'GET',
        path: '/admin',
        headers: { Authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.' },
      })),
      ...ids.map(() => ({
        method: 'GET',
        path: '/admin',
        headers:
          as('checkout', ['orders:read']).Authorization === undefined
            ? {}
            : { Authorization: `${as('checkout', ['orders:read'])['Authorization'] ?? ''}x` },
      })),
    ];
    for (const input of [...traffic, ...hostile]) await proxy.request(input);
    const lines = await until('all lines are written', () => {
      const written = proxy.process
        .output()
        .split('\n')
        .filter((line) => line.includes('"decision":"shadow"'));
      return written.length >= traffic.length + hostile.length ? written : null;
    });
    const members = Object.keys(JSON.parse(lines[0] ?? '{}') as object);
    const made = [...shopLog(1, 1, 0)].map((line) => Object.keys(JSON.parse(line) as object));
    t.same(made, [members], 'the made-up log has the members of a real line, in their order');
    t.same(
      Object.keys(JSON.parse(lineOf('/x')) as object).filter((name) => !members.includes(name)),
      [],
    );

    const folder = dirname(proxy.configFile);
    const { code, out, err } = sallyport(
      folder,
      ['learn', '-', '--config', 'sallyport.yaml', '--out', 'learnt', '--min-count', '4', '--min-days', '1'],
      proxy.process.output(),
    );
    t.equal(code, 0, err);
    t.match(out, /4 credential_missing/);
    const next = compiled(join(folder, 'learnt/learnt.yaml'));
    t.same(
      next.routes.map(
        ({ name, methods, paths }) => `${name} ${[...(methods ?? [])].join()} ${paths.map(({ text }) => text).join()}`,
      ),
      [
        'health GET /healthz',
        'post-orders POST /orders',
        'get-orders-export GET /orders/export',
        'get-orders-id GET /orders/{id}',
      ],
    );
    proxy.writeConfigText(
      readFileSync(join(folder, 'learnt/learnt.yaml'), 'utf8').replaceAll('../', ''),
      'in its place',
    );
    await proxy.loaded();
    for (const input of traffic) t.equal((await proxy.request(input)).status, 200, `${input.method} ${input.path}`);
    for (const input of hostile) t.equal((await proxy.request(input)).status, 401, input.path);
    t.equal((await proxy.request({ path: '/orders/export', headers: as('checkout', ['orders:read']) })).status, 403);
    t.same(await proxy.exposures(), []);
  },
);
