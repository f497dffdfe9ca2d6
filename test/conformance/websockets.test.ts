/** docs/contract.md 3 and 4 at the opening handshake of a WebSocket, and what ends a connection that is open. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { WebSocket } from 'ws';
import {
  clientOf,
  soundFields,
  startWebSocketUpstream,
  type Client,
  type WebSocketUpstream,
} from '../proxy/websocket/websocket-proxy.js';
import { rsaKey } from '../support/keys.js';
import { projectDir } from '../support/project-dir.js';
import { sendRaw, type RawResponse } from '../support/raw-client.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, comparable, refusals, type Refusal } from './refusals.js';
import { checkSilence } from './silence.js';

const receiver = await startWebSocketUpstream(t);
const live = {
  name: 'live',
  methods: ['GET'],
  path: '/live',
  websocket: true,
  subjects: ['checkout'],
  permissions: ['orders:read'],
};
const files = {
  name: 'files',
  methods: ['GET'],
  path: '/files/**',
  websocket: true,
  subjects: ['checkout'],
  permissions: [],
};
const plain = {
  name: 'plain',
  methods: ['GET', 'POST'],
  path: '/plain',
  subjects: ['checkout'],
  permissions: [],
  idempotency: 'none',
};
const config = {
  listen: { max_target: '1KiB', max_header_bytes: '8KiB' },
  upstream: { url: receiver.url },
  routes: [live, files, plain],
};
const proxy = await startProxyProcess(t, { config });

interface Asked {
  readonly target?: string;
  readonly method?: string;
  readonly version?: string;
  /** After those of the handshake; the good credential among them unless given. */
  readonly fields?: string;
  readonly token?: string | null;
}

async function ask({
  target = '/live',
  method = 'GET',
  version = 'HTTP/1.1',
  fields = '',
  token = proxy.token(),
}: Asked): Promise<RawResponse> {
  const host = /^host:/im.test(fields) ? '' : 'Host: a\r\n';
  const credential = token === null ? '' : `Authorization: Bearer ${token}\r\n`;
  const [answer] = await proxy.send(
    `${method} ${target} ${version}\r\n${host}${soundFields}${credential}${fields}\r\n`,
    { untilClosed: true },
  );
  if (answer === undefined) throw new Error('no answer');
  return answer;
}

const malformed: readonly (Asked & { readonly name: string; readonly refusal: Refusal })[] = [
  { name: 'a dot segment', target: '/files/../live', refusal: refusals.badTarget },
  { name: 'an encoded slash', target: '/files/a%2fb', refusal: refusals.badTarget },
  { name: 'an absolute target', target: 'http://a/live', refusal: refusals.badTarget },
  { name: 'a long target', target: `/files/${'a'.repeat(1024)}`, refusal: refusals.targetTooLong },
  { name: 'a large head', fields: `X-Large: ${'a'.repeat(9000)}\r\n`, refusal: refusals.headerTooLarge },
  { name: 'TRACE', method: 'TRACE', refusal: refusals.methodNotAllowed },
  { name: 'a method in lower case', method: 'get', refusal: refusals.badRequest },
  { name: 'HTTP/1.0', version: 'HTTP/1.0', refusal: refusals.badRequest },
  { name: 'another expectation', fields: 'Expect: something\r\n', refusal: refusals.expectation },
  { name: 'two hosts', fields: 'Host: a\r\nHost: b\r\n', refusal: refusals.badRequest },
  { name: 'no host', fields: 'Host:\r\n', refusal: refusals.badRequest },
  { name: 'two credentials', fields: 'Authorization: Bearer x\r\n', refusal: refusals.badRequest },
  {
    name: 'Connection names an identity field',
    fields: 'Connection: X-Auth-Subject\r\n',
    refusal: refusals.badRequest,
  },
  { name: 'a body', fields: 'Content-Length: 4\r\n', refusal: refusals.badRequest },
  { name: 'chunks', fields: 'Transfer-Encoding: chunked\r\n', refusal: refusals.badRequest },
  {
    name: 'both framings',
    fields: 'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n',
    refusal: refusals.badRequest,
  },
  { name: 'another protocol as well', fields: 'Upgrade: foo\r\n', refusal: refusals.badRequest },
  { name: 'POST', method: 'POST', refusal: refusals.badRequest },
  { name: 'a second key', fields: 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n', refusal: refusals.badRequest },
  { name: 'a route without WebSockets', target: '/plain', refusal: refusals.badRequest },
];

t.test('what no request may have is refused at the upgrade, and nothing reaches the upstream', async (t) => {
  for (const { name, refusal, ...asked } of malformed) checkRefusal(t, await ask(asked), refusal, name);
  const { refused } = JSON.parse(readFileSync(join(projectDir, 'test/vectors/targets.json'), 'utf8')) as {
    refused: { name: string; input: string }[];
  };
  // White space would end the target.
  for (const { name, input } of refused.filter((each) => /^\/[\x21-\x7e]*$/.test(each.input))) {
    t.equal((await ask({ target: input })).status, 400, name);
  }
  t.equal(receiver.upgrades.length, 0);
});

const key = rsaKey();
const minted = (claims: Claims, header?: Claims): string => mintToken({ key, claims, header });
const nowS = Math.floor(Date.now() / 1_000);
const credentials: readonly (Asked & { readonly name: string })[] = [
  { name: 'none', token: null },
  { name: 'no token', token: 'x' },
  { name: 'in the query', target: `/live?access_token=${proxy.token()}`, token: null },
  { name: 'as a subprotocol', token: null, fields: `Sec-WebSocket-Protocol: bearer, ${proxy.token()}\r\n` },
  { name: 'in a cookie', token: null, fields: `Cookie: token=${proxy.token()}\r\n` },
  { name: 'another scheme', token: null, fields: 'Authorization: Basic YTpi\r\n' },
  { name: 'expired', token: minted({ iat: nowS - 600, exp: nowS - 60 }) },
  { name: 'not yet valid', token: minted({ nbf: nowS + 600 }) },
  { name: 'too long a life', token: minted({ exp: nowS + 86_400 }) },
  { name: 'another issuer', token: minted({ iss: 'https://other.example.com' }) },
  { name: 'another audience', token: minted({ aud: 'billing' }) },
  { name: 'another source', token: minted({ source: 'x' }) },
  { name: 'another type', token: minted({ token_type: 'x' }) },
  { name: "a session's", token: minted({ sessionHandle: 'h' }) },
  { name: 'HS256', token: minted({}, { alg: 'HS256' }) },
  { name: 'none as algorithm', token: minted({}, { alg: 'none' }) },
  { name: 'a static key', token: minted({}, { kid: 's-1' }) },
  { name: 'an unknown key', token: minted({}, { kid: 'd-unknown' }) },
  { name: 'signed by another', token: mintToken({ key: { ...rsaKey('d-2'), keyId: 'd-1' } }) },
  { name: 'a signature that is cut', token: proxy.token().slice(0, -8) },
];

t.test(
  'every refused credential is the same 401 at the upgrade, on a route with WebSockets, without, and on none',
  async (t) => {
    const answers = [];
    for (const { name, ...asked } of credentials) {
      if (typeof asked.token === 'string') proxy.markSecret(asked.token);
      const answer = await ask(asked);
      checkRefusal(t, answer, refusals.unauthorized, name);
      answers.push(comparable(answer));
    }
    for (const target of ['/plain', '/nowhere']) answers.push(comparable(await ask({ target, token: null })));
    t.equal(new Set(answers).size, 1);
    t.equal(receiver.upgrades.length, 0);
  },
);

t.test('a good credential without the right is 403 at the upgrade', async (t) => {
  const cases: readonly (Asked & { readonly name: string })[] = [
    { name: 'another subject', token: proxy.token({ sub: 'reporting' }) },
    { name: 'without the permission', token: proxy.token({ permissions: ['orders:write'] }) },
    { name: 'no such route', target: '/nowhere' },
  ];
  for (const { name, ...asked } of cases) checkRefusal(t, await ask(asked), refusals.forbidden, name);
  t.equal(receiver.upgrades.length, 0);
});

/** A connection; `inShadow` is the same through the proxy in shadow mode, in runs that have one. */
interface Connection extends Client {
  readonly inShadow: Client | null;
}

function open(claims?: Claims, headers: Readonly<Record<string, string>> = {}): Connection {
  const fields = { headers: { ...proxy.authorization(claims), ...headers } };
  const connect = (port: number): Client =>
    clientOf(t, new WebSocket(`ws://127.0.0.1:${port}/live?q=marked-secret-5d1f`, fields));
  return { ...connect(proxy.port), inShadow: proxy.shadow === null ? null : connect(proxy.shadow.port) };
}

async function echoes({ socket, messages }: Client): Promise<void> {
  const before = messages.length;
  socket.send('hello');
  await until('the echo', () => messages.length > before);
}

type Watched = Pick<ProxyProcess, 'metric' | 'logOf'>;

/** Each end of it, with the receiver and the proxy that it has. */
function sides({ inShadow, ...client }: Connection): readonly (readonly [Client, WebSocketUpstream, Watched])[] {
  const own = [client, receiver, proxy] as const;
  return inShadow === null || receiver.mirror === null || proxy.shadow === null
    ? [own]
    : [own, [inShadow, receiver.mirror, proxy.shadow]];
}

/** Whether a plain request reaches the receiver, which has nothing for it. */
async function isLetThrough(): Promise<boolean> {
  return (await proxy.request({ path: '/live', headers: proxy.authorization() })).status === 404;
}

t.test('a connection is open, echoes, and has one line in the log at its end', async (t) => {
  const client = open({ jti: 'j-1' }, { 'X-Request-Id': 'ws-1', X_Auth_Subject: 'evil', 'X-Auth-Kind': 'evil' });
  await client.opened;
  await client.inShadow?.opened;
  for (const [one, { upgrades }, { metric, logOf }] of sides(client)) {
    const before = await metric('sallyport_websocket_closes_total{reason="caller"}');
    await echoes(one);
    t.match(upgrades.at(-1)?.headers, {
      'x-auth-subject': 'checkout',
      'x-auth-kind': 'service',
      'x-auth-token-id': 'j-1',
      'x-request-id': 'ws-1',
    });
    t.equal(upgrades.at(-1)?.headers['x_auth_subject'], undefined);
    await until('it is counted, and no other', async () => (await metric('sallyport_websockets_open')) === 1);
    one.socket.close(1000);
    t.match(await logOf('ws-1'), {
      route: 'live',
      method: 'GET',
      path: '/live',
      decision: 'forwarded',
      reason: null,
      kind: 'service',
      subject: 'checkout',
      status: 101,
    });
    t.equal((await metric('sallyport_websocket_closes_total{reason="caller"}')) - before, 1);
    t.equal(await metric('sallyport_websockets_open'), 0);
  }
});

t.test(
  'closed with 4401 when the token expires, or a reload revokes it, and with 4403 when the permission goes',
  async (t) => {
    const short = open({ exp: Math.floor(Date.now() / 1_000) - 3 }, { 'X-Request-Id': 'ws-expired' });
    const revoked = open({}, { 'X-Request-Id': 'ws-revoked' });
    await Promise.all([short.opened, revoked.opened, short.inShadow?.opened, revoked.inShadow?.opened]);
    t.same(await short.closed, { code: 4401, reason: 'unauthorized' }, 'after the skew of 5 s');
    t.match(await proxy.logOf('ws-expired'), { reason: 'token_expired', status: 101 });
    if (short.inShadow !== null) {
      await echoes(short.inShadow);
      short.inShadow.socket.close(1000);
      t.match(
        await proxy.shadow?.logOf('ws-expired'),
        { decision: 'shadow', reason: 'token_expired', status: 101 },
        'in shadow mode it stays open',
      );
    }
    proxy.rewrite({ ...config, revoked: { subjects: ['checkout'] } });
    t.same(await revoked.closed, { code: 4401, reason: 'unauthorized' });
    t.match(await proxy.logOf('ws-revoked'), { reason: 'subject_revoked', status: 101 });
    if (revoked.inShadow !== null) {
      t.same(await revoked.inShadow.closed, { code: 4401, reason: 'unauthorized' }, 'in shadow mode too');
    }
    checkRefusal(t, await ask({}), refusals.unauthorized, 'a new one');
    proxy.rewrite(config);
    await until('it is lifted', isLetThrough);
    const forbidden = open();
    await Promise.all([forbidden.opened, forbidden.inShadow?.opened]);
    proxy.rewrite({ ...config, routes: [{ ...live, permissions: ['orders:admin'] }, plain] });
    t.same(await forbidden.closed, { code: 4403, reason: 'forbidden' });
    if (forbidden.inShadow !== null) {
      await proxy.loaded();
      await echoes(forbidden.inShadow);
      forbidden.inShadow.socket.close(1000);
    }
    proxy.rewrite(config);
  },
);

t.test('what Sallyport has no room or no keys for is refused at the upgrade', async (t) => {
  const crowded = await startProxyProcess(t, {
    config: {
      listen: { max_websockets: 2, header_timeout: '300ms' },
      upstream: { url: receiver.url },
      issuers: { core: { key_ids: { accept: ['d-*', 'away-*'] }, jwks: { cooldown: '0ms' } } },
      routes: [
        live,
        { ...files, limits: { requests_per_second: 0.01, burst: 1 } },
        { ...live, name: 'one', path: '/one', limits: { max_in_flight: 1 } },
      ],
    },
  });
  const handshakeTo = (path: string, token = crowded.token()): string =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\n${soundFields}Authorization: Bearer ${token}\r\n\r\n`;
  const check = async (name: string, bytes: string, refusal: Refusal): Promise<void> => {
    const before = receiver.upgrades.length;
    const [answer] = await crowded.send(bytes, { untilClosed: true });
    if (answer === undefined) throw new Error(`${name}: no answer`);
    checkRefusal(t, answer, refusal, name);
    t.equal(receiver.upgrades.length, before, name);
    if (crowded.shadow === null) return;
    const [inShadow] = await sendRaw(crowded.shadow.port, bytes, { untilClosed: true });
    if (inShadow === undefined) throw new Error(`${name}: no answer in shadow mode`);
    checkRefusal(t, inShadow, refusal, `${name}, in shadow mode`);
  };
  /** Through each proxy that there is: what is crowded is crowded in shadow mode too. */
  const openAt = async (path: string): Promise<readonly Client[]> => {
    const ports = [crowded.port, ...(crowded.shadow === null ? [] : [crowded.shadow.port])];
    const clients = ports.map((port) =>
      clientOf(t, new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: crowded.authorization() })),
    );
    await Promise.all(clients.map(({ opened }) => opened));
    return clients;
  };
  await check('a head that does not come to its end', handshakeTo('/live').slice(0, -2), refusals.tooSlow);
  crowded.jwks.behave((_req, res) => res.writeHead(500).end());
  await check(
    'an unknown key while keys cannot be fetched',
    handshakeTo('/live', crowded.token({}, { kid: 'away-1' })),
    refusals.keysUnavailable,
  );
  const rated = await openAt('/files/a');
  await check('the rate of its caller', handshakeTo('/files/a'), refusals.rateLimited);
  const one = await openAt('/one');
  await check('the WebSockets of its caller', handshakeTo('/one'), refusals.tooManyInFlight);
  await check('the WebSockets of all', handshakeTo('/live'), refusals.overloaded);
  for (const { socket, closed } of [...rated, ...one]) {
    socket.close(1000);
    await closed;
  }
  for (const { metric } of [crowded, ...(crowded.shadow === null ? [] : [crowded.shadow])]) {
    await until('its place is free', async () => (await metric('sallyport_websockets_open')) === 0);
  }
  await openAt('/one');
  t.same(await crowded.exposures(), []);
});

checkSilence(t, proxy);

t.test('SIGTERM tells open connections 1001, and the process ends with 0', async (t) => {
  await until('the old policy', isLetThrough);
  const client = open();
  await Promise.all([client.opened, client.inShadow?.opened]);
  const ended = proxy.stop();
  for (const [one] of sides(client)) t.same(await one.closed, { code: 1001, reason: 'going away' });
  t.match(await ended, { code: 0 });
});
