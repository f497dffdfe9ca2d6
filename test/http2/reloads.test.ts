/** A config that changes while it serves: what is spoken to the upstream counts at once, what callers speak waits. */
import { once } from 'node:events';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import t from 'tap';
import { certificates } from '../support/certificates.js';
import { ask, connectHttp2 } from '../support/http2-client.js';
import { listen } from '../support/listening.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import { until } from '../support/until.js';

t.setTimeout(120_000);

async function restartNeeded(proxy: ProxyProcess): Promise<unknown> {
  const { restart_needed: keys } = JSON.parse((await proxy.admin('/status')).text) as { restart_needed: unknown };
  return keys;
}

t.test('upstream.http2 counts from the reload on, and what is under way ends as it began', async (t) => {
  const files = certificates(t);
  const { cert, key } = files.server;
  const held: Http2ServerResponse[] = [];
  // Either protocol on one port, as ALPN has it.
  const server = createSecureServer({ cert, key, allowHTTP1: true });
  server.on('request', (req: Http2ServerRequest, res: Http2ServerResponse) => {
    if (req.url !== '/orders?hold') {
      res.end(req.httpVersion);
      return;
    }
    res.write(`${req.httpVersion} `);
    held.push(res);
  });
  const { port } = await listen(t, server);
  const url = `https://localhost:${String(port)}`;
  const config = (http2: boolean): ConfigTree => ({
    listen: { http2: true },
    upstream: { url, ca_file: files.ca.certFile, http2 },
  });
  const proxy = await startProxyProcess(t, { config: config(false) });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  const authorization = String(proxy.authorization().Authorization);
  const spoken = async (): Promise<string> =>
    (await ask(session, { ':path': '/orders', authorization })).body.toString();
  t.equal(await spoken(), '1.1');
  for (const [http2, before, after] of [
    [true, '1.1', '2.0'],
    [false, '2.0', '1.1'],
  ] as const) {
    const stream = session.request({ ':path': '/orders?hold', authorization });
    const pieces: string[] = [];
    stream.setEncoding('utf8').on('data', (text: string) => pieces.push(text));
    await once(stream, 'data');
    proxy.rewrite(config(http2));
    await proxy.loaded();
    t.same(await restartNeeded(proxy), []);
    t.equal(await spoken(), after);
    held.pop()?.end('to its end');
    await once(stream, 'end');
    t.equal(pieces.join(''), `${before} to its end`);
  }
});

t.test('listen.http2 and what belongs to it wait for a restart, and say so', async (t) => {
  for (const http2 of [false, true]) {
    const before = { listen: { http2 } };
    const after = { listen: http2 ? { http2: false } : { http2: true, max_streams: 7, grpc_health: 'answer' } };
    const keys = http2 ? ['listen.http2'] : ['listen.http2', 'listen.max_streams', 'listen.grpc_health'];
    const proxy = await startProxyProcess(t, { config: before });
    const authorization = String(proxy.authorization().Authorization);
    const speaksHttp2 = async (): Promise<boolean> => {
      const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
      return (await ask(session, { ':path': '/orders', authorization })).status === 200;
    };
    t.equal(await speaksHttp2(), http2);
    proxy.rewrite(after);
    await proxy.loaded();
    t.same(await restartNeeded(proxy), keys);
    const told = 'a restart is needed for part of the config';
    const line = await until('it is told', () => proxy.logs().find(({ msg }) => msg === told));
    t.match(line, { level: 'warn', keys });
    t.equal(await speaksHttp2(), http2, 'it is served as before');
    t.equal((await proxy.request({ path: '/orders', headers: { Authorization: authorization } })).status, 200);
    proxy.rewrite(before);
    await proxy.loaded();
    t.same(await restartNeeded(proxy), []);
  }
});
