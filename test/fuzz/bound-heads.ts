/** What the sender of a bound token shows with it, right and wrong. */
import { makeProof, type ProofInput } from '../support/dpop.js';
import { once, pick, type Draw } from './draw.js';
import { clients, nonce, origin } from './listenings.js';
import type { Field } from './model-fields.js';
import type { Head } from './model.js';
import { nowMs } from './policies.js';

const nowS = nowMs / 1000;

/** What `cnf` of a token may be. The first is the plainest. */
export const confirmations: readonly unknown[] = [
  { jkt: clients.own.key.thumbprint },
  { jkt: clients.fast.key.thumbprint },
  { 'x5t#S256': clients.own.certificate.digest },
  { jkt: clients.own.key.thumbprint, 'x5t#S256': clients.own.certificate.digest },
  { jkt: clients.own.key.thumbprint, 'x5t#S256': clients.thief.certificate.digest },
  { jkt: clients.thief.key.thumbprint },
  { 'x5t#S256': clients.thief.certificate.digest },
  { jkt: clients.own.key.thumbprint, jwk: {} },
  { jkt: clients.own.key.thumbprint, x5t: 'x' },
  { jkt: clients.own.key.thumbprint, 'x5t#S256': null },
  { jkt: `${clients.own.key.thumbprint}=` },
  { jkt: 'short' },
  { kid: 'x' },
  {},
  null,
  'jkt',
  [clients.own.key.thumbprint],
];

type Members = Readonly<Record<string, readonly unknown[]>>;

const claimValues: Members = {
  jti: ['used-1', 'away-1', '', 'a b', 5, undefined, 'x'.repeat(257)],
  htm: ['GET', 'POST', 'get', undefined],
  htu: [
    `${origin}/orders`,
    `${origin}:443/orders`,
    'HTTPS://Orders.Example.com/orders',
    `${origin}/orders?a=b`,
    `${origin}/orders#a`,
    'https://sallyport.example/orders',
    'http://orders.example.com/orders',
    '/orders',
    undefined,
  ],
  iat: [nowS - 64, nowS - 65, nowS + 5, nowS + 6, nowS + 0.5, String(nowS), undefined],
  ath: ['x', undefined],
  nonce: [nonce, 'nonce-of-before', undefined],
};

const headerValues: Members = {
  typ: ['JWT', 'DPOP+JWT', undefined],
  alg: ['none', 'HS256', 'ES384', undefined],
  jwk: [clients.thief.key.jwk, { ...clients.own.key.jwk, d: 'AA' }, { kty: 'oct', k: 'AA' }, undefined],
  kid: ['k'],
  crit: [['exp']],
};

/** A proof for this request, mostly sound, with one or two things that are not. */
export function someProof(draw: Draw, { method, target }: Pick<Head, 'method' | 'target'>, token: string): string {
  const { own, fast, thief } = clients;
  const said = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  const meant = [own.key, fast.key, thief.key].find(({ thumbprint }) => said.includes(thumbprint)) ?? own.key;
  const key = once(draw, 8) ? pick(draw, [own.key, fast.key, thief.key]) : meant;
  const path = target.split('?')[0] ?? '';
  const claims: Record<string, unknown> = { nonce: once(draw, 8) ? undefined : nonce };
  const header: Record<string, unknown> = {};
  const [values, changed] = once(draw, 4) ? [headerValues, header] : [claimValues, claims];
  for (let count = pick(draw, [0, 0, 0, 1, 1, 2]); count > 0; count--) {
    const name = pick(draw, Object.keys(values));
    const list = values[name] ?? [];
    changed[name] = list[draw.below(list.length)]; // undefined is left out
  }
  const input: ProofInput = { method, uri: `${origin}${path}`, token, nowMs, claims, header };
  const proof = makeProof(key, once(draw, 12) ? { ...input, signer: thief.key } : input);
  return once(draw, 20) ? pick(draw, [`${proof}=`, `${proof}.`, ` ${proof}`, `${proof}, ${proof}`, '']) : proof;
}

/** The fields of a request with a bound token: its scheme, a proof or none, and a certificate that a front names. */
export function boundFields(draw: Draw, head: Pick<Head, 'method' | 'target'>, token: string): Field[] {
  const fields: Field[] = [
    ['Authorization', `${pick(draw, ['DPoP', 'DPoP', 'DPoP', 'dpop', 'Bearer', 'DPoP '])} ${token}`],
  ];
  if (!once(draw, 8)) fields.push(['DPoP', someProof(draw, head, token)]);
  if (once(draw, 16)) fields.push([pick(draw, ['DPoP', 'dpop', 'D-PoP', 'X-DPoP']), someProof(draw, head, token)]);
  if (!once(draw, 3)) fields.push(clientCert(draw));
  if (once(draw, 16)) fields.push(clientCert(draw));
  return fields;
}

/** The certificate that a proxy in front names. */
export function clientCert(draw: Draw): Field {
  const { own, thief } = clients;
  const value = pick(draw, [own.header, own.header, own.header, thief.header, oddHeader(draw), oddHeader(draw)]);
  return [once(draw, 12) ? pick(draw, ['client-cert', 'Client_Cert', 'X-Client-Cert']) : 'Client-Cert', value];
}

function oddHeader(draw: Draw): string {
  const { header } = clients.own;
  const bytes = Buffer.from(header.slice(1, -1), 'base64');
  const again = (changed: Buffer): string => `:${changed.toString('base64')}:`;
  return pick(draw, [
    header.slice(1, -1),
    header.slice(1),
    `${header};a=b`,
    ` ${header}`,
    `${header}, ${header}`,
    `"${header}"`,
    '::',
    ':AAAA:',
    header.replace(/=*:$/, (end) => (end === '==:' ? '=:' : '==:')),
    header.replaceAll('+', '-').replaceAll('/', '_'),
    again(Buffer.concat([bytes, Buffer.alloc(1)])),
    again(Buffer.concat([bytes, bytes])),
    again(bytes.subarray(0, -1)),
  ]);
}
