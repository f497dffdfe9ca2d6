/** What jose takes for a token, and we do not. */
import t from 'tap';
import { startProxy } from '../proxy/harness.js';
import { request } from '../support/raw-client.js';
import { signToken } from '../support/tokens.js';

const routes = [{ name: 'any', methods: ['GET'], path: '/**', subjects: ['checkout'], permissions: [] }];

t.test('a signature has one spelling', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const token = proxy.authorization().Authorization.slice('Bearer '.length);
  const [header = '', payload = '', signature = ''] = token.split('.');
  const last = signature.slice(-1);
  // 256 bytes are 342 characters, and the last one has four bits to spare.
  const twins = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_').filter(
    (letter) => letter !== last,
  );
  const spellings = [
    ...twins.map((letter) => `${header}.${payload}.${signature.slice(0, -1)}${letter}`),
    `${token}=`,
    `${token}==`,
    `${token} `,
    ` ${token}`,
    `${token}A`,
    `${token}.`,
    `.${token}`,
    `${token}\t`,
    `${header}.${payload}. ${signature}`,
    `${header}.${payload}.${signature.replaceAll('-', '+').replaceAll('_', '/')}=`,
    `${header}=.${payload}.${signature}`,
    `${header}.${payload}=.${signature}`,
    `${header}.${payload}`,
    `${header}.${payload}.`,
    `${header}..${signature}`,
    `.${payload}.${signature}`,
    `${token}.${signature}`,
    `"${token}"`,
    `${token},${token}`,
  ];
  const trimmed = [`${token} `, `${token}\t`];
  for (const spelling of spellings) {
    const { status } = await request(proxy.port, { path: '/a', headers: { Authorization: `Bearer ${spelling}` } });
    // White space at the end of a field's value is no part of it (RFC 9110 §5.5).
    t.equal(status, trimmed.includes(spelling) ? 200 : 401, spelling.slice(-30));
  }
  t.equal(proxy.receiver.requests.length, trimmed.length);
});

t.test('claims have the types and bounds that they have', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const nowS = Math.floor(Date.now() / 1000);
  const changes: readonly Readonly<Record<string, unknown>>[] = [
    { exp: undefined },
    { exp: 1e300 },
    { exp: String(nowS + 60) },
    { exp: nowS + 60.5 },
    { exp: null },
    { exp: [nowS + 60] },
    { exp: -1 },
    { exp: nowS + 8000 },
    { iat: nowS + 600 },
    { iat: 'now' },
    { iat: null },
    { iat: nowS - 7200 },
    { nbf: nowS + 600 },
    { nbf: true },
    { sub: 5 },
    { sub: '' },
    { sub: ['checkout'] },
    { sub: null },
    { sub: { checkout: 1 } },
    { sub: 'check\nout' },
    { sub: 'x'.repeat(1025) },
    { jti: {} },
    { jti: '' },
    { jti: 7 },
    { jti: null },
    { jti: 'a b' },
    { aud: ['orders'] },
    { aud: undefined },
    { iss: ['https://api.example.com'] },
    { permissions: 'orders:read' },
    { permissions: ['orders:read', 5] },
    { permissions: undefined },
    { permissions: { 0: 'orders:read' } },
    { sessionHandle: 'x' },
    { stt: 0 },
    { refreshTokenHash1: null },
    { source: ['microservice'] },
    { token_type: null },
  ];
  for (const change of changes) {
    t.equal(
      (await request(proxy.port, { path: '/a', headers: proxy.authorization(change) })).status,
      401,
      JSON.stringify(change),
    );
  }
  const header = JSON.stringify({ alg: 'RS256', kid: proxy.key.keyId });
  const sound = JSON.stringify({
    iss: 'https://api.example.com',
    aud: 'orders',
    source: 'microservice',
    token_type: 'service',
    sub: 'checkout',
    permissions: [],
    exp: nowS + 60,
  });
  const payloads = [
    sound.replace('"sub":"checkout"', '"sub":"mallory","sub":"checkout"'),
    sound.replace('"sub"', '"s\\u0075b":"mallory","sub"'),
    `\ufeff${sound}`,
    `${sound} x`,
    `[${sound}]`,
    sound.replace('"permissions":[]', '"permissions":["\\ud800"]'),
    sound.replace('}', `,"deep":${'['.repeat(20)}${']'.repeat(20)}}`),
    '{}',
    'null',
    '',
  ];
  for (const payload of payloads) {
    const { status } = await request(proxy.port, {
      path: '/a',
      headers: { Authorization: `Bearer ${signToken(header, payload, proxy.key.privateKey)}` },
    });
    t.equal(status, 401, payload.slice(0, 80));
  }
  t.equal(proxy.receiver.requests.length, 0);
  const { status } = await request(proxy.port, {
    path: '/a',
    headers: { Authorization: `Bearer ${signToken(header, sound, proxy.key.privateKey)}` },
  });
  t.equal(status, 200, 'and with none of this it passes');
});
