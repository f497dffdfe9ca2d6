/** Callers that are real programs, curl and bash, and targets that are nginx, Go and Python, none of them ours. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import t from 'tap';
import { runCurl } from '../../support/curl.js';
import { listen } from '../../support/listening.js';
import { runToEnd } from '../../support/program.js';
import { startCalling } from './calling.js';
import { startGoTarget, startNginxTarget, startPythonTarget } from './real-targets.js';

// That of the file, which is half a minute otherwise.
t.setTimeout(120_000);

/** Whoever comes here was sent where nobody may go. */
const strayed: string[] = [];
const trap = createServer(({ method = '', url = '', headers }, res) => {
  strayed.push(`${method} ${url} ${headers.authorization ?? ''}`);
  res.end('elsewhere');
}).on('connect', (_req, socket) => {
  strayed.push('CONNECT');
  socket.destroy();
});
const elsewhere = await listen(t, trap);

interface Answered {
  readonly exit: number;
  readonly status: number;
  readonly attempts: string;
  readonly notRetried: string;
  readonly body: string;
}

async function ask(port: number, path: string, ...args: readonly string[]): Promise<Answered> {
  const told = '\n%{http_code} %header{x-sallyport-attempts} %header{x-sallyport-not-retried}';
  const url = path.includes('://') ? path : `http://127.0.0.1:${String(port)}${path}`;
  const { code, stdout } = await runCurl('--write-out', told, ...args, url);
  const lines = stdout.split('\n');
  const [status = '', attempts = '', notRetried = ''] = (lines.pop() ?? '').split(' ');
  return { exit: code, status: Number(status), attempts, notRetried, body: lines.join('\n') };
}

t.test('nginx: what it says of other places leads nowhere, and its failures are told', async (t) => {
  const target = await startNginxTarget(t, elsewhere.port);
  const { port } = await startCalling(t, `http://127.0.0.1:${String(target)}`);
  const rows: readonly (readonly [string, readonly string[], Partial<Answered>])[] = [
    ['/orders/v1', [], { status: 200, attempts: '1', body: 'done' }],
    ['/orders/found', [], { status: 302, attempts: '1' }],
    ['/orders/kept', ['--data', 'x'], { status: 307, attempts: '1' }],
    ['/orders/moved', ['--data', 'x'], { status: 308, attempts: '1' }],
    ['/orders/scheme', [], { status: 301, attempts: '1' }],
    ['/orders/internal', [], { status: 200, attempts: '1', body: 'done' }],
    ['/orders/login', [], { status: 401, attempts: '1', body: 'who are you' }],
    ['/orders/login', ['--data', 'x'], { status: 401, attempts: '1', body: 'who are you' }],
    ['/orders/dropped', [], { status: 502, attempts: '3', notRetried: 'attempts' }],
    ['/orders/dropped', ['--data', 'x'], { status: 502, attempts: '1', notRetried: 'in_doubt' }],
    ['/orders/down', [], { status: 502, attempts: '3', notRetried: 'attempts' }],
    ['/orders/down', ['--data', 'x'], { status: 502, attempts: '1', notRetried: 'in_doubt' }],
    [
      '/orders/down',
      ['--data', 'x', '-H', 'Idempotency-Key: a'],
      { status: 502, attempts: '3', notRetried: 'attempts' },
    ],
    ['/orders/closing', [], { status: 200, attempts: '1', body: 'done' }],
    ['/orders/closing', ['--compressed'], { status: 200, attempts: '1', body: 'done' }],
    ['/orders/v1', ['--head'], { status: 200, attempts: '1' }],
  ];
  for (const [path, args, expected] of rows) {
    t.match(await ask(port, path, ...args), { exit: 0, notRetried: '', ...expected }, `${path} ${args.join(' ')}`);
  }
  t.same(strayed, []);
});

t.test('Go: what is cut off is passed on as cut off, and counts as it came', async (t) => {
  const target = await startGoTarget(t);
  const { port } = await startCalling(t, `http://127.0.0.1:${String(target)}`, { response_timeout: '500ms' });
  // curl: 18 is a body that is too short, 56 a connection that broke.
  const rows: readonly (readonly [string, readonly string[], Partial<Answered> | { readonly exit: RegExp }])[] = [
    ['/orders/cut', [], { exit: 18, status: 200, attempts: '1', body: 'too little' }],
    ['/orders/cut', ['--data', 'x'], { exit: 18, status: 200, attempts: '1' }],
    ['/orders/cut-chunk', [], { exit: /18|56/, status: 200, attempts: '1' }],
    ['/orders/two', [], { exit: 0, status: 200, attempts: '1', body: 'one' }],
    ['/orders/drip', [], { exit: 0, status: 200, body: 'dripdripdripdripdrip' }],
    ['/orders/hints', [], { exit: 0, status: 200, body: 'done' }],
    ['/orders/late', [], { exit: 0, status: 504, attempts: '3', notRetried: 'attempts' }],
    ['/orders/late', ['--data', 'x'], { exit: 0, status: 504, attempts: '1', notRetried: 'in_doubt' }],
  ];
  for (const [path, args, expected] of rows) {
    t.match(await ask(port, path, ...args), expected, `${path} ${args.join(' ')}`);
  }
  const counted: readonly (readonly [string, readonly string[], Partial<Answered>, string])[] = [
    ['/orders/abort', [], { status: 502, attempts: '3', notRetried: 'attempts' }, '3'],
    ['/orders/abort', ['--data', 'x'], { status: 502, attempts: '1', notRetried: 'in_doubt' }, '1'],
    ['/orders/abort', ['--data', 'x', '-H', 'Idempotency-Key: a'], { status: 502, attempts: '3' }, '3'],
    ['/orders/cut-head', ['--data', 'x'], { status: 502, attempts: '1', notRetried: 'in_doubt' }, '1'],
  ];
  for (const [path, args, expected, runs] of counted) {
    t.match(await ask(port, path, ...args), { exit: 0, ...expected }, `${path} ${args.join(' ')}`);
    t.equal((await ask(port, '/orders/runs')).body, runs, `runs of ${path} ${args.join(' ')}`);
  }
});

t.test('Python: the body of what it refuses, which it leaves unread, is none of the next request', async (t) => {
  const target = await startPythonTarget(t);
  const { port, tokenFile } = await startCalling(t, `http://127.0.0.1:${String(target)}`);
  t.match(await ask(port, '/orders/old'), { exit: 0, status: 200, body: 'until the end' });
  t.match(await ask(port, '/orders/v1', '--data', 'a=1'), { status: 401, attempts: '1', body: 'no' });
  writeFileSync(tokenFile, 'token.two.x');
  // Each is refused first: read again, the file has what is taken.
  t.match(await ask(port, '/orders/v1', '--data', 'a=1'), { status: 201, attempts: '2', body: '3' });
  for (let i = 0; i < 5; i += 1) {
    t.match(await ask(port, '/orders/v1', '--data', 'a=1'), { status: 201, attempts: '1', body: '3' });
    t.match(await ask(port, '/orders/refused', '--data', 'a=1'), { status: 403, attempts: '1', body: 'no' });
    const request = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
    t.match(await ask(port, '/orders/refused', '--data-binary', request), { status: 403, attempts: '1', body: 'no' });
  }
});

t.test('curl: nothing that it can be told makes a request go elsewhere', async (t) => {
  const target = await startGoTarget(t);
  const { port } = await startCalling(t, `http://127.0.0.1:${String(target)}/api`);
  const away = `127.0.0.1:${String(elsewhere.port)}`;
  const own = `127.0.0.1:${String(port)}`;
  const rows: readonly (readonly [string, readonly string[], Partial<Answered>])[] = [
    [`http://${away}/orders/v1`, ['--proxy', `http://${own}`], { status: 400 }],
    [`http://${own}/orders/v1`, ['--proxy', `http://${own}`], { status: 400 }],
    [`http://${away}/orders/v1`, ['--proxy', `http://${own}`, '--proxytunnel'], { exit: 56 }],
    ['/orders/v1', ['--request-target', `http://${away}/orders/v1`], { status: 400 }],
    ['/orders/v1', ['--request-target', `//${away}/orders/v1`], { status: 400 }],
    ['/orders/v1', ['--request-target', `@${away}/orders/v1`], { status: 400 }],
    ['/orders/v1', ['--request-target', '*'], { status: 400 }],
    ['/orders/v1', ['--request-target', `/orders/v1#@${away}`], { status: 400 }],
    ['/orders/../admin', ['--path-as-is'], { status: 400 }],
    ['/orders/%2e%2e/admin', ['--path-as-is'], { status: 400 }],
    ['/orders/%2E%2E%2Fadmin', ['--path-as-is'], { status: 400 }],
    [`/orders@${away}/v1`, [], { status: 403 }],
    [`/orders.${away}/v1`, [], { status: 403 }],
    ['/orders/v1', ['--request', 'CONNECT'], { status: 405 }],
    ['/orders/v1', ['--request', 'TRACE'], { status: 405 }],
    ['/orders/v1', ['--haproxy-protocol'], { status: 400 }],
    ['/orders/v1', ['--user', 'a:b'], { status: 400 }],
    ['/orders/v1', ['-H', 'Authorization;'], { status: 400 }],
    ['/orders/v1', ['-H', 'Connection: authorization'], { status: 400 }],
    ['/orders/v1', ['-H', 'Proxy-Authorization: Basic YTpi'], { status: 200 }],
  ];
  for (const [path, args, expected] of rows) {
    t.match(await ask(port, path, ...args), expected, `${path} ${args.join(' ')}`);
  }
  t.same(strayed, []);
});

t.test('curl: what it says of itself reaches the target, and what it says of the way does not', async (t) => {
  const target = await startGoTarget(t);
  const { port } = await startCalling(t, `http://127.0.0.1:${String(target)}/api`, { idempotency: 'generate' });
  const away = `127.0.0.1:${String(elsewhere.port)}`;
  const told = [
    `Host: ${away}`,
    `X-Forwarded-Host: ${away}`,
    'X-Forwarded-For: 10.0.0.1',
    `Forwarded: host=${away}`,
    `X-Original-URL: http://${away}/`,
    'X-Rewrite-URL: /admin',
    'X-Auth-Subject: root',
    'DPoP: forged',
    'X-Kept: no',
    'Connection: x-kept, keep-alive',
  ];
  const args = told.flatMap((field) => ['-H', field]);
  const { body } = await ask(port, '/orders/v1?a=%2F&b', '--data', 'x', ...args);
  const seen = JSON.parse(body) as {
    readonly target: string;
    readonly host: string;
    readonly fields: Readonly<Record<string, readonly string[]>>;
  };
  t.equal(seen.target, '/api/v1?a=%2F&b');
  t.equal(seen.host, `127.0.0.1:${String(target)}`);
  t.same(seen.fields['Authorization'], ['Bearer token.one.x']);
  t.match(seen.fields['Idempotency-Key'], [/^[0-9a-f-]{36}$/]);
  t.equal(seen.fields['X-Request-Id']?.length, 1);
  for (const name of ['X-Forwarded-Host', 'X-Forwarded-For', 'X-Auth-Subject', 'Dpop', 'X-Kept']) {
    t.equal(seen.fields[name], undefined, name);
  }
  t.same(strayed, []);
});

t.test('curl follows a redirect by itself, and takes no token along', async (t) => {
  const target = await startNginxTarget(t, elsewhere.port);
  const { port } = await startCalling(t, `http://127.0.0.1:${String(target)}`);
  t.match(await ask(port, '/orders/found', '--location'), { status: 200, body: 'elsewhere' });
  t.same(strayed.splice(0), ['GET /found ']);
});

t.test('a script of bash, without any HTTP library', async (t) => {
  const target = await startGoTarget(t);
  const { port } = await startCalling(t, `http://127.0.0.1:${String(target)}`);
  const bash = async (script: string): Promise<string> =>
    (await runToEnd('bash', ['--noprofile', '--norc', '-c', script])).stdout;
  const connection = `exec 3<>/dev/tcp/127.0.0.1/${String(port)}`;
  const old = await bash(`${connection}; printf 'GET /orders/v1 HTTP/1.0\\r\\n\\r\\n' >&3; head -1 <&3`);
  t.match(old, /^HTTP\/1\.1 400 /, 'without a host there is no request');
  const two = await bash(
    `${connection}
     printf 'GET /orders/drip HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nGET /orders/v1 HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n' >&3
     cat <&3`,
  );
  t.match(two, /^HTTP\/1\.1 200 OK[\s\S]*drip[\s\S]*HTTP\/1\.1 200 OK[\s\S]*"target":"\/v1"/, 'two at once, in order');
  const url = `http://127.0.0.1:${String(port)}/orders/v1`;
  const piped = await bash(
    `head -c 600000 /dev/zero | curl -q -s -T - -X POST -H 'Expect: 100-continue' --max-time 20 ${url}`,
  );
  t.match(piped, /"body":600000/, 'a pipe has no length');
});
