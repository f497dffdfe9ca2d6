import { createHash, generateKeyPairSync } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet } from 'jose';
import t from 'tap';
import { WebSocket } from 'ws';
import { localFiles } from '../../../src/adapters/files/files.js';
import {
  createAssertions,
  publishedAfterMs,
  readAssertionFile,
  type AssertionFile,
} from '../../../src/app/keys/assertion-keys.js';
import { collectingLog } from '../../adapters/store-commands.js';
import { manualTime } from '../../adapters/manual-time.js';
import { principal } from '../../decision/samples.js';
import { clientOf, startWebSocketUpstream } from '../../proxy/websocket/websocket-proxy.js';
import { request } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { startServe } from '../../support/serve-process.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig, startProxyProcess } from '../../support/proxy-process.js';

const pem = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();

function keyFile(t: Scope, text = pem()): string {
  const path = join(tempDir(t), 'assertion.pem');
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

const settings = (path: string) => ({
  keyFile: path,
  issuer: 'sallyport',
  audience: 'orders',
  ttlS: 30,
  header: 'X-Auth-Assertion',
});

async function read(path: string): Promise<AssertionFile> {
  const file = await readAssertionFile(settings(path), localFiles);
  if (!file.ok) throw new Error(file.error.messages.join());
  return file.value;
}

t.test('a key that is replaced in its file stays published for longer than what it signed holds', async (t) => {
  const path = keyFile(t);
  const { clock, advance } = manualTime();
  const log = collectingLog();
  const first = await read(path);
  const assertions = createAssertions(first, { files: localFiles, clock, log, intervalMs: 10 });
  t.teardown(assertions.close);
  const kids = (): string[] =>
    (JSON.parse(assertions.jwks() ?? '{"keys":[]}') as JSONWebKeySet).keys.map(({ kid }) => kid ?? '');
  const signer = (): string | undefined => {
    const [name, value = ''] = assertions.headers(
      { principal: principal(), method: 'GET', target: '/' },
      settings(path),
    );
    t.equal(name, 'X-Auth-Assertion');
    return decodeProtectedHeader(value).kid;
  };
  const [old] = kids();
  t.equal(signer(), old);
  writeFileSync(path, 'nothing of use');
  await until('it says so', () => log.lines.some((line) => line.includes('the old ones stay in use')));
  t.equal(signer(), old);
  t.notOk(log.lines.some((line) => line.includes('may read')));
  chmodSync(path, 0o644);
  writeFileSync(path, pem() + pem());
  await until('the new ones', () => kids().length === 3);
  t.ok(
    log.lines.some((line) =>
      line.includes('the new file of a secret is one that every user of this machine may read (mode 0644)'),
    ),
  );
  t.not(signer(), old);
  t.same([kids()[0], kids()[2]], [signer(), old], 'the first one signs, the old one is published last');
  advance(publishedAfterMs - 1);
  t.ok(kids().includes(old ?? ''));
  advance(1);
  t.notOk(kids().includes(old ?? ''));
  const other = await read(keyFile(t));
  assertions.use(other);
  t.equal(signer(), other.keys[0]?.keyId, 'a config that names another file');
  assertions.use(null);
  t.same(assertions.headers({ principal: principal(), method: 'GET', target: '/' }, settings(path)), []);
  t.equal(kids().length, 3, 'what was signed before is still verified');
  advance(publishedAfterMs);
  t.equal(assertions.jwks(), null);
});

t.test('the upstream gets a signed assertion that only Sallyport can set', async (t) => {
  const path = keyFile(t);
  const proxy = await startProxyProcess(t, {
    config: {
      identity: { assertion: { key_file: path, audience: 'orders', ttl: '60s', header: 'X-Asserted' } },
      probes: { host: '127.0.0.1', port: 0 },
      store: { memory: {} },
      routes: [
        { name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] },
        {
          name: 'create',
          methods: ['POST'],
          path: '/orders',
          subjects: ['checkout'],
          permissions: [],
          idempotency: 'required',
        },
        { name: 'tried', methods: ['GET'], path: '/tried', subjects: ['checkout'], permissions: [], mode: 'shadow' },
        { name: 'open', methods: ['GET'], path: '/open', access: 'public' },
      ],
    },
  });
  const forged = { 'X-Asserted': 'forged', x_asserted: 'forged', 'X-Auth-Assertion': 'forged' };
  proxy.receiver.behave((req, res) =>
    req.resume().on('end', () => res.writeHead(200, { 'X-Asserted': 'mine', 'X-Kept': 'yes' }).end('x')),
  );
  const page = await proxy.admin('/.well-known/jwks.json');
  t.equal(page.field('content-type'), 'application/jwk-set+json');
  const keys = createLocalJWKSet(JSON.parse(page.text) as JSONWebKeySet);
  const get = await proxy.request({
    path: '/orders?a=1',
    headers: { ...proxy.authorization({ jti: 'j-1' }), ...forged },
  });
  await proxy.request({
    method: 'POST',
    path: '/orders',
    headers: { ...proxy.authorization(), ...forged, 'Idempotency-Key': 'k' },
    body: 'x',
  });
  t.equal(get.field('X-Asserted'), null, 'nor does the receiver answer with one');
  t.equal(get.field('X-Kept'), 'yes');
  const [read, write] = proxy.receiver.requests;
  for (const received of [read, write]) {
    const [assertion = '', ...more] = received?.field('X-Asserted') ?? [];
    t.same(more, []);
    t.notMatch(received?.rawHeaders.join('\n'), 'forged');
    const { payload } = await jwtVerify(assertion, keys, { issuer: 'sallyport', audience: 'orders' });
    t.match(payload, {
      sub: 'checkout',
      kind: 'service',
      htm: received?.method,
      permissions: ['orders:read', 'orders:write'],
    });
    t.equal(Number(payload.exp) - Number(payload.iat), 60);
  }
  t.not(read?.field('X-Asserted')[0], write?.field('X-Asserted')[0]);
  for (const path of ['/open', '/tried']) {
    await proxy.request({ path, headers: forged });
    t.notMatch(proxy.receiver.requests.at(-1)?.rawHeaders.join('\n'), /assert/i, `${path}: nobody gets none`);
  }
  proxy.rewrite({});
  await until('a reload takes it away', async () => {
    await proxy.request({ path: '/orders', headers: proxy.authorization() });
    return proxy.receiver.requests.at(-1)?.field('X-Asserted').length === 0;
  });
  t.equal((await proxy.admin('/.well-known/jwks.json')).status, 200, 'what was signed can still be verified');
  t.same(await proxy.exposures(), []);
});

t.test(
  'admin and probes publish one set, and a key that is put into the file signs and is published on both',
  async (t) => {
    const path = keyFile(t);
    const proxy = await startProxyProcess(t, {
      config: {
        identity: { assertion: { key_file: path, audience: 'orders' } },
        probes: { host: '127.0.0.1', port: 0 },
      },
    });
    const ports = [proxy.adminPort, await proxy.process.port('probes')];
    const published = async (): Promise<JSONWebKeySet[]> =>
      Promise.all(
        ports.map(async (port) => {
          const page = await request(port, { path: '/.well-known/jwks.json' });
          t.equal(page.status, 200);
          t.equal(page.field('content-type'), 'application/jwk-set+json');
          t.notMatch(page.text, /"d":/, 'no private part');
          return JSON.parse(page.text) as JSONWebKeySet;
        }),
      );
    const received = async (): Promise<string> => {
      await proxy.request({ path: '/orders', headers: proxy.authorization() });
      return String(proxy.receiver.requests.at(-1)?.field('x-auth-assertion')[0]);
    };
    /** Held against the set of each listener, as a receiver would. */
    const holds = async (assertion: string, sets: readonly JSONWebKeySet[]): Promise<boolean[]> =>
      Promise.all(
        sets.map(async (set) =>
          jwtVerify(assertion, createLocalJWKSet(set), {
            algorithms: ['ES256'],
            issuer: 'sallyport',
            audience: 'orders',
          }).then(
            () => true,
            () => false,
          ),
        ),
      );

    const [first, before] = [await received(), await published()];
    t.same(before[0], before[1], 'one set');
    t.same(await holds(first, before), [true, true]);
    const old = decodeProtectedHeader(first).kid;

    writeFileSync(path, pem().slice(0, 100));
    await until('a file that is half written is refused', () =>
      proxy.process.output().includes('the assertion keys were not reloaded'),
    );
    t.equal(decodeProtectedHeader(await received()).kid, old, 'the old key signs on');
    t.same(await published(), before);

    writeFileSync(path, pem());
    const second = await until('the new key signs', async () => {
      const assertion = await received();
      return decodeProtectedHeader(assertion).kid === old ? null : assertion;
    });
    const after = await published();
    t.same(await holds(second, after), [true, true], 'on both at once');
    t.same(await holds(first, after), [true, true], 'and what the old one signed holds on');
    t.same(await holds(second, before), [false, false], 'a receiver with the old set has to fetch');
    t.same(await proxy.exposures(), []);
  },
);

t.test('the opening handshake of a WebSocket carries an assertion for its method and target', async (t) => {
  const receiver = await startWebSocketUpstream(t);
  const live = { methods: ['GET'], websocket: true, subjects: ['checkout'], permissions: [] };
  const proxy = await startProxyProcess(t, {
    config: {
      identity: { assertion: { key_file: keyFile(t), audience: 'orders' } },
      upstream: { url: receiver.url },
      routes: [
        { ...live, name: 'live', path: '/live' },
        { ...live, name: 'tried', path: '/tried', mode: 'shadow' },
      ],
    },
  });
  const keys = createLocalJWKSet(JSON.parse((await proxy.admin('/.well-known/jwks.json')).text) as JSONWebKeySet);
  const open = async (
    path: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<string | string[] | undefined> => {
    const forged = { 'X-Auth-Assertion': 'forged', x_auth_assertion: 'forged' };
    const client = clientOf(
      t,
      new WebSocket(`ws://127.0.0.1:${proxy.port}${path}`, { headers: { ...headers, ...forged } }),
    );
    await client.opened;
    t.notMatch(receiver.upgrades.at(-1)?.rawHeaders.join('\n'), 'forged', path);
    return receiver.upgrades.at(-1)?.headers['x-auth-assertion'];
  };
  const target = '/live?a=%41';
  const { payload } = await jwtVerify(String(await open(target, proxy.authorization())), keys, {
    issuer: 'sallyport',
    audience: 'orders',
  });
  const hash = createHash('sha256').update(target).digest('base64url');
  t.match(payload, { sub: 'checkout', kind: 'service', htm: 'GET', target_sha256: hash });
  t.equal(await open('/tried', {}), undefined, 'nobody gets none');
  const foreign = await request(proxy.adminPort, { path: '/.well-known/jwks.json', headers: { Host: 'evil.example' } });
  t.not(foreign.status, 200, 'the admin listener checks Host here too');
  t.notMatch(foreign.text, 'kid');
});

t.test('where nothing is signed there are no keys, and a file that holds none ends the start', async (t) => {
  const proxy = await startProxyProcess(t);
  t.equal((await proxy.admin('/.well-known/jwks.json')).status, 404);
  for (const [text, code] of [
    ['not a key', 1],
    [null, 2],
  ] as const) {
    const file = join(tempDir(t), 'sallyport.yaml');
    writeFileSync(
      file,
      baseConfig({
        identity: {
          assertion: { key_file: text === null ? '/nowhere/key.pem' : keyFile(t, text), audience: 'orders' },
        },
      }),
    );
    const serve = startServe(t, file);
    t.equal((await serve.exited).code, code);
    t.match(serve.output(), text === null ? 'does not exist' : 'holds no PEM private key');
  }
});
