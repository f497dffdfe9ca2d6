/** What jose takes for a token, and we do not. */
import t from 'tap';
import { startProxy } from '../proxy/harness.js';
import { malformedClaimRows, sessionClaimRows } from '../support/attacks/claims.js';
import { otherSpellings } from '../support/attacks/tokens.js';
import { request } from '../support/raw-client.js';
import { signToken } from '../support/tokens.js';

const routes = [{ name: 'any', methods: ['GET'], path: '/**', subjects: ['checkout'], permissions: [] }];

t.test('a signature has one spelling', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const token = proxy.authorization().Authorization.slice('Bearer '.length);
  // White space at the end of a field's value is no part of it (RFC 9110 §5.5).
  const trimmed = [`${token} `, `${token}\t`];
  for (const spelling of [...otherSpellings(token).map((other) => other.token), ...trimmed]) {
    const { status } = await request(proxy.port, { path: '/a', headers: { Authorization: `Bearer ${spelling}` } });
    t.equal(status, trimmed.includes(spelling) ? 200 : 401, JSON.stringify(spelling.slice(-30)));
  }
  t.equal(proxy.receiver.requests.length, trimmed.length);
});

t.test('claims have the types and bounds that they have', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const nowS = Math.floor(Date.now() / 1000);
  const changes: readonly Readonly<Record<string, unknown>>[] = [
    ...[...malformedClaimRows, ...sessionClaimRows].map(([claim, value]) => ({ [claim]: value })),
    { exp: String(nowS + 60) },
    { exp: nowS + 60.5 },
    { exp: [nowS + 60] },
    { exp: -1 },
    { exp: nowS + 8000 },
    { iat: nowS + 600 },
    { iat: 'now' },
    { iat: nowS - 7200 },
    { nbf: nowS + 600 },
    { aud: ['orders'] },
    { aud: undefined },
    { iss: ['https://api.example.com'] },
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
