/** What the sender of a bound token shows with it, right and wrong. */
import { once, pick, type Draw } from './draw.js';
import { clients, nonce, origin } from './listenings.js';
import type { Field } from './model-fields.js';
import type { Head } from './model.js';
import { nowMs } from './policies.js';
import { keys, uncounted } from './proofs/keys.js';
import { someProof } from './proofs/some-proof.js';

/** Of clients by every algorithm, those too that count for nothing. */
const otherKeys = [...Object.values(keys), ...Object.values(uncounted)];

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
  ...otherKeys.map(({ thumbprint }) => ({ jkt: thumbprint })),
];

const signers = [clients.own.key, clients.fast.key, clients.thief.key, ...otherKeys];

/** A proof for this request, mostly sound, with one or two things that are not. */
export function proofFor(draw: Draw, { method, target }: Pick<Head, 'method' | 'target'>, token: string): string {
  const said = claimsOf(token);
  const meant = signers.find(({ thumbprint }) => said.includes(thumbprint)) ?? clients.own.key;
  const key = once(draw, 8) ? pick(draw, signers.slice(0, 3)) : meant;
  const path = target.split('?')[0] ?? '';
  const madeFor = { method, origin, path, token, nowMs, nonce: once(draw, 8) ? undefined : nonce };
  return someProof(draw, key, madeFor, pick(draw, [0, 0, 0, 1, 1, 2])).proof;
}

function claimsOf(token: string): string {
  return Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
}

/** The fields of a request with a bound token: its scheme, a proof or none, and a certificate that a front names. */
export function boundFields(draw: Draw, head: Pick<Head, 'method' | 'target'>, token: string): Field[] {
  const meant = claimsOf(token).includes('"jkt"') ? 'DPoP' : 'Bearer';
  const schemes = [meant, meant, meant, meant.toLowerCase(), `${meant} `, meant === 'DPoP' ? 'Bearer' : 'DPoP'];
  const fields: Field[] = [['Authorization', `${pick(draw, schemes)} ${token}`]];
  if (!once(draw, 8)) fields.push(['DPoP', proofFor(draw, head, token)]);
  if (once(draw, 16)) fields.push([pick(draw, ['DPoP', 'dpop', 'D-PoP', 'X-DPoP']), proofFor(draw, head, token)]);
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
