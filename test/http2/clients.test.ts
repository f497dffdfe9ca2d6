/** Real clients of HTTP/2 before a running `serve`: curl, nghttp and h2load. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http2';
import { join } from 'node:path';
import t from 'tap';
import { certificates } from '../support/certificates.js';
import { runCurl } from '../support/curl.js';
import { runH2load } from '../support/h2load.js';
import { listen } from '../support/listening.js';
import { runNghttp } from '../support/nghttp.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { tempDir } from '../support/temp-dir.js';

t.setTimeout(240_000);

const http2 = { listen: { http2: true } };

/** What the receiver says that it got. */
interface Echo {
  readonly method: string;
  readonly target: string;
  readonly body: string;
}

t.test('curl with prior knowledge: GET, HEAD, bodies of all sizes, refusals, trailers', async (t) => {
  const proxy = await startProxyProcess(t, { config: http2 });
  const origin = `http://127.0.0.1:${String(proxy.port)}`;
  const authorization = `Authorization: ${String(proxy.authorization().Authorization)}`;
  const writes = `Authorization: ${String(proxy.authorization({ permissions: ['orders:write'] }).Authorization)}`;
  const said = ['--http2-prior-knowledge', '--write-out', '\n%{http_version} %{response_code}'];
  const got = await runCurl(...said, '-H', authorization, `${origin}/orders?a=b%20c`);
  t.match(got, { code: 0, stdout: /\n2 200$/ });
  t.match(JSON.parse(got.stdout.split('\n')[0] ?? '') as Echo, { method: 'GET', target: '/orders?a=b%20c', body: '' });
  const head = await runCurl(...said, '--head', '-H', authorization, `${origin}/orders/1`);
  t.match(head, { code: 0, stdout: /^HTTP\/2 200 [^]*\n2 200$/ });

  for (const size of [0, 1, 70_000, 1_000_000]) {
    const file = join(tempDir(t), 'body');
    writeFileSync(file, Buffer.alloc(size, 'b'));
    // With a length that is said, and without one.
    for (const how of [
      ['--data-binary', `@${file}`],
      ['--request', 'POST', '--upload-file', file],
    ]) {
      const posted = await runCurl(...said, '-H', writes, ...how, `${origin}/orders`);
      t.match(posted, { code: 0, stdout: /\n2 200$/ });
      t.equal((JSON.parse(posted.stdout.split('\n')[0] ?? '') as Echo).body.length, size);
    }
  }

  const problem = /^\{"type":"about:blank","title":"Unauthorized","status":401\}\n2 401$/;
  t.match(await runCurl(...said, `${origin}/orders`), { code: 0, stdout: problem });
  t.match(await runCurl(...said, '-H', authorization, `${origin}/nowhere`), { code: 0, stdout: /\n2 403$/ });
  // More than its first window, which nobody will ever read.
  const large = join(tempDir(t), 'large');
  writeFileSync(large, Buffer.alloc(3_000_000));
  t.match(await runCurl(...said, '--data-binary', `@${large}`, `${origin}/orders`), { stdout: /\n2 401$/ });
  t.match(await runCurl(...said, '-H', writes, '--data-binary', `@${large}`, `${origin}/orders`), {
    stdout: /\n2 413$/,
  });

  proxy.receiver.behave((_req, res) => {
    res.writeHead(200, { Trailer: 'ETag, X-Auth-Subject' });
    res.write('a body');
    res.addTrailers({ ETag: '"1"', 'X-Auth-Subject': 'forged' });
    res.end();
  });
  const asked = await runCurl(
    '--http2-prior-knowledge',
    '-i',
    '-H',
    'TE: trailers',
    '-H',
    authorization,
    `${origin}/orders`,
  );
  t.match(asked.stdout, /^HTTP\/2 200 [^]*a body[^]*etag: "1"\r\n/, 'trailers, where they are asked for');
  t.notMatch(asked.stdout, 'forged');
  t.notMatch((await runCurl('--http2-prior-knowledge', '-i', '-H', authorization, `${origin}/orders`)).stdout, 'etag');
  t.match(
    await runCurl('--http1.1', '-o', '/dev/null', '-w', '%{http_version}', '-H', authorization, `${origin}/orders`),
    {
      stdout: /^1.1$/,
    },
    'on the same port',
  );
  // By `Upgrade: h2c`, which is ignored.
  t.match(
    await runCurl('--http2', '-o', '/dev/null', '-w', '%{http_version}', '-H', authorization, `${origin}/orders`),
    {
      stdout: /^1.1$/,
    },
  );
  t.same(await proxy.exposures(), []);
});

t.test('curl over TLS agrees on HTTP/2 by ALPN, and shows its certificate where one is asked for', async (t) => {
  const files = certificates(t);
  const pair = { cert_file: files.server.certFile, key_file: files.server.keyFile };
  const clientPair = { client_ca_file: files.ca.certFile };
  const shown = ['--cert', files.client.certFile, '--key', files.client.keyFile];
  const strange = ['--cert', files.stranger.certFile, '--key', files.stranger.keyFile];
  for (const { tls, client, answer } of [
    { tls: pair, client: [], answer: /^2 200$/ },
    { tls: { ...pair, ...clientPair }, client: shown, answer: /^2 200$/ },
    { tls: { ...pair, ...clientPair }, client: [], answer: /^0 000$/ },
    { tls: { ...pair, ...clientPair }, client: strange, answer: /^0 000$/ },
    { tls: { ...pair, ...clientPair, client_auth: 'optional' }, client: [], answer: /^2 200$/ },
    { tls: { ...pair, ...clientPair, client_auth: 'optional' }, client: strange, answer: /^0 000$/ },
  ]) {
    const proxy = await startProxyProcess(t, { config: { listen: { http2: true, tls } } });
    const ask = async (...how: readonly string[]): ReturnType<typeof runCurl> =>
      runCurl(
        ...['--cacert', files.ca.certFile, ...client, '-o', '/dev/null', '-w', '%{http_version} %{response_code}'],
        ...['-H', `Authorization: ${String(proxy.authorization().Authorization)}`, ...how],
        `https://localhost:${String(proxy.port)}/orders`,
      );
    const { code, stdout } = await ask('--http2');
    t.match(stdout, answer);
    t.equal(code === 0, answer.test('2 200'));
    if (code === 0) {
      t.equal((await ask('--http1.1')).stdout, '1.1 200');
      t.equal((await ask('--no-alpn')).stdout, '1.1 200', 'without ALPN');
    }
    const reached = proxy.receiver.requests.length;
    t.equal(reached, code === 0 ? 3 : 0);
  }
});

t.test('nghttp asks many times on one connection, over h2c and over TLS', async (t) => {
  const files = certificates(t);
  const tls = { cert_file: files.server.certFile, key_file: files.server.keyFile };
  for (const listens of [{ http2: true }, { http2: true, tls }]) {
    const proxy = await startProxyProcess(t, { config: { listen: listens } });
    const origin = `${'tls' in listens ? 'https' : 'http'}://localhost:${String(proxy.port)}`;
    const authorization = String(proxy.authorization().Authorization);
    const targets = ['/orders', '/orders/1', '/orders/2', '/nowhere', '/healthz', '/orders?x=1'];
    // Each of them five times, at once.
    const { code, stdout, stderr } = await runNghttp(
      ...['-n', '-s', '-y', '-m', '5', '-H', `authorization: ${authorization}`],
      ...targets.map((target) => `${origin}${target}`),
    );
    t.equal(code, 0, stderr);
    const told = stdout.split('\n').flatMap((line) => {
      const [, status, path] = /^ *\d+ .* (\d{3}) +\S+ (\/\S*)$/.exec(line) ?? [];
      return status === undefined ? [] : [`${status} ${String(path)}`];
    });
    const expected = targets.flatMap((target) =>
      Array<string>(5).fill(`${target === '/nowhere' ? '403' : '200'} ${target}`),
    );
    t.same(told.sort(), expected.sort());
    t.equal(proxy.receiver.requests.length, 25);
    t.equal(await proxy.metric('sallyport_requests_total'), 30);

    const file = join(tempDir(t), 'body');
    writeFileSync(file, Buffer.alloc(300_000, 'b'));
    const writes = String(proxy.authorization({ permissions: ['orders:write'] }).Authorization);
    const posted = await runNghttp(
      ...['-y', '-m', '3', '-H', ':method: POST', '-H', `authorization: ${writes}`, '-H', 'te: trailers'],
      ...['--trailer', 'x-auth-subject: forged', '-d', file, `${origin}/orders`],
    );
    t.equal(posted.code, 0, posted.stderr);
    t.equal(posted.stdout.match(/"method":"POST"/g)?.length, 3);
    for (const { body, trailers, field } of proxy.receiver.requests.slice(25)) {
      t.equal(body.length, 300_000);
      t.same([trailers, field('x-auth-subject')], [[], ['checkout']]);
    }
  }
});

const upstreams = {
  'an upstream of HTTP/1.1': null,
  'an upstream of HTTP/2': async (scope: Parameters<typeof listen>[0]) => {
    const server = createServer().on('stream', (stream) => {
      stream.on('error', () => undefined).resume();
      stream.respond({ ':status': 200 });
      stream.end('hello');
    });
    return (await listen(scope, server)).port;
  },
};

for (const [name, start] of Object.entries(upstreams)) {
  t.test(`h2load: 10,000 reads and 10,000 writes are each answered, with ${name}`, async (t) => {
    const upstream = start === null ? {} : { url: `http://127.0.0.1:${String(await start(t))}`, http2: true };
    const proxy = await startProxyProcess(t, { config: { ...http2, upstream } });
    if (start === null) {
      proxy.receiver.behave((req, res) => {
        req.resume().on('end', () => res.end('hello'));
        // Of so many nothing has to be kept.
        proxy.receiver.requests.length = 0;
      });
    }
    const bodyFile = join(tempDir(t), 'body');
    writeFileSync(bodyFile, 'an order');
    const url = `http://127.0.0.1:${String(proxy.port)}/orders`;
    const load = { url, requests: 10_000, connections: 8, streams: 20 };
    const read = await runH2load({ ...load, headers: proxy.authorization() });
    t.same(read, { succeeded: 10_000, broken: 0, statuses: [10_000, 0, 0, 0], bodyBytes: 50_000 });
    const writes = proxy.authorization({ permissions: ['orders:write'] });
    const written = await runH2load({ ...load, headers: writes, bodyFile });
    t.same(written, { succeeded: 10_000, broken: 0, statuses: [10_000, 0, 0, 0], bodyBytes: 50_000 });
    const refused = await runH2load({ ...load, requests: 2_000, headers: {} });
    t.match(refused, { broken: 2_000, statuses: [0, 0, 2_000, 0] }, 'what is refused is answered as well');
    t.equal(await proxy.metric('sallyport_requests_total'), 22_000);
    t.equal(await proxy.metric('sallyport_connections_ended_total{reason="http2_abuse"}'), 0);
  });
}
