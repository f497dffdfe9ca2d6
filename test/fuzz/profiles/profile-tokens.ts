/** Tokens for the issuers of a world: sound ones, and ones that say something wrong or are signed wrongly. */
import { createHmac, sign } from 'node:crypto';
import { base64url } from '../../support/tokens.js';
import { signatureBy } from '../../support/profile-tokens.js';
import { once, pick, type Draw } from '../draw.js';
import { keyPair, kindFor, type KeyKind } from './key-pool.js';
import { changedClaims, soundClaims, type Entry } from './profile-claims.js';
import { brokenSignature, openSignature, withoutLeadingZero } from './profile-signatures.js';
import { algorithmsOf, standardOf } from './model-profiles.js';
import { allAlgorithms, type Signer, type World, type WorldIssuer } from './worlds.js';

/** A token before it is signed: names may come twice, in any order, with any text as value. */
interface Draft {
  readonly header: readonly Entry[];
  readonly payload: readonly Entry[];
}

/** A token for one of the issuers, at a moment in seconds since the epoch. */
export function someProfileToken(draw: Draw, world: World, nowS: number): string {
  const issuer = pick(draw, world.issuers);
  const signer = pick(draw, issuer.signers);
  const claims = soundClaims(draw, issuer.rules, nowS);
  const draft: Draft = {
    header: entriesOf(soundHeader(draw, issuer, signer)),
    payload: entriesOf(claims),
  };
  // Mostly one thing at a time, since of two wrong things either may be what it is refused for.
  const wrong = pick(draw, [
    'nothing',
    'nothing',
    'claims',
    'claims',
    'claims',
    'header',
    'signature',
    'algorithm',
    'several',
  ]);
  const payload = isWrong(wrong, 'claims') ? changedClaims(draw, draft.payload, issuer.rules, nowS) : draft.payload;
  const alike = isWrong(wrong, 'algorithm') ? pick(draw, otherAlgorithms(issuer, signer)) : signer.algorithm;
  const named = draft.header.map(([name, json]): Entry => [name, name === 'alg' ? JSON.stringify(alike) : json]);
  const header = isWrong(wrong, 'header') ? changedHeader(draw, named, signer) : named;
  const input = `${base64url(spelled(draw, header))}.${base64url(spelled(draw, payload))}`;
  const signature = isWrong(wrong, 'signature')
    ? wronglySigned(draw, input, signer, world)
    : signedBy({ ...signer, algorithm: once(draw, 2) ? signer.algorithm : alike }, input);
  const token = `${input}.${signature.toString('base64url')}`;
  return once(draw, 60) ? respelledToken(draw, token) : token;
}

function isWrong(wrong: string, part: string): boolean {
  return wrong === part || (wrong === 'several' && part !== 'algorithm');
}

/** What this key could sign by as well; most often what the issuer allows. */
export function otherAlgorithms({ rules }: WorldIssuer, { pair, algorithm }: Signer): readonly string[] {
  const others = allAlgorithms.filter((name) => kindFor(name) === pair.kind && name !== algorithm);
  const allowed = others.filter((name) => algorithmsOf(rules).includes(name));
  return allowed.length > 0 ? [...allowed, ...allowed, ...others] : [...others, algorithm];
}

function soundHeader(
  draw: Draw,
  { rules }: WorldIssuer,
  { keyId, algorithm }: Signer,
): Readonly<Record<string, unknown>> {
  const type = pick(draw, rules.token_typ ?? standardOf(rules).types);
  return { alg: algorithm, kid: keyId, ...(type === 'absent' ? {} : { typ: type }) };
}

/** What a header may say instead, right and wrong. */
export function changedHeader(draw: Draw, header: readonly Entry[], signer: Signer): readonly Entry[] {
  const values: Readonly<Record<string, readonly unknown[]>> = {
    alg: [...allAlgorithms, 'none', 'HS256', 'rs256', 'RS256 ', ['RS256'], null, 5, 'ES256K', 'Ed25519'],
    kid: ['k-1', 'k-2', 'k-3', 'k-9', '', 'K-1', 'k-\u00e9', ['k-1'], null, 5, 'x'.repeat(257), '__proto__'],
    typ: ['JWT', 'jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt', 'JOSE', 'absent', '', 'JWS', null, 5, ['JWT']],
    crit: [['exp'], [], ['b64']],
    b64: [false, true],
    jku: ['https://evil.example/jwks.json'],
    jwk: [signer.pair.jwk, keyPair(signer.pair.kind, 'c').jwk],
    x5u: ['https://evil.example/x5u'],
    x5c: [['MIIB']],
    enc: ['A128GCM'],
    zip: ['DEF'],
    x5t: ['x'],
    cty: ['JWT'],
    extra: [1, { deep: [[]] }],
    constructor: ['x'],
  };
  const name = pick(draw, ['alg', 'alg', 'kid', 'kid', 'typ', 'typ', ...Object.keys(values)]);
  const value = pick(draw, values[name] ?? [null]);
  const entry: Entry = [name, JSON.stringify(value)];
  const at = header.findIndex(([known]) => known === name);
  if (at < 0) return [...header, entry];
  if (once(draw, 6)) return header.filter(([known]) => known !== name);
  // Twice: with the same value or another, before or behind.
  if (once(draw, 6)) return [pick(draw, [entry, header[at] ?? entry]), ...header];
  if (once(draw, 6)) return [...header, pick(draw, [entry, header[at] ?? entry])];
  return header.map((known, index) => (index === at ? entry : known));
}

export function signedBy({ algorithm, pair }: Signer, input: string): Buffer {
  return signatureBy(algorithm as Parameters<typeof signatureBy>[0], pair.privateKey, input);
}

/** Signatures of somebody else, by another algorithm, with a shared secret that is none, or broken ones. */
export function wronglySigned(draw: Draw, input: string, signer: Signer, world: Pick<World, 'issuers'>): Buffer {
  const { pair, algorithm } = signer;
  const texts = [
    pair.publicKey.export({ format: 'pem', type: 'spki' }),
    pair.publicKey.export({ format: 'der', type: 'spki' }),
    JSON.stringify(pair.jwk),
    '',
  ];
  if (algorithm.startsWith('PS') && once(draw, 6)) {
    return withoutLeadingZero(signedBy(signer, input), input, pair, algorithm);
  }
  // Keys of this kind are few.
  if (pair.kind === 'Ed25519' && once(draw, 2)) return openSignature(signedBy(signer, input), pair);
  switch (draw.below(7)) {
    case 0:
      return createHmac('sha256', pick(draw, texts)).update(input).digest();
    case 1:
      return signedBy({ ...signer, pair: keyPair(pair.kind, 'c') }, input);
    case 2:
      return signedBy(pick(draw, pick(draw, world.issuers).signers), input);
    case 3: {
      const other = pick(draw, ofKind(pair.kind));
      return sign(hashFor(draw, other), Buffer.from(input), keyFormOf(draw, signer));
    }
    case 4:
      return openSignature(signedBy(signer, input), pair);
    default:
      return brokenSignature(draw, signedBy(signer, input), input, pair, algorithm);
  }
}

function ofKind(kind: KeyKind): readonly string[] {
  return allAlgorithms.filter((algorithm) => kindFor(algorithm) === kind);
}

function hashFor(draw: Draw, algorithm: string): string | null {
  if (algorithm === 'EdDSA') return null;
  return once(draw, 2) ? pick(draw, ['sha256', 'sha384', 'sha512', 'sha1']) : `sha${algorithm.slice(2)}`;
}

/** The key with another padding, another length of salt, or another form of signatures. */
function keyFormOf(draw: Draw, { pair }: Signer): Parameters<typeof sign>[2] {
  const key = pair.privateKey;
  if (pair.kind === 'RSA') {
    return once(draw, 2) ? key : { key, padding: 6, saltLength: pick(draw, [0, 32, 48, 64, 20]) };
  }
  return { key, dsaEncoding: pick(draw, ['der', 'ieee-p1363'] as const) };
}

export function entriesOf(members: Readonly<Record<string, unknown>>): readonly Entry[] {
  return Object.entries(members).map(([name, value]): Entry => [name, JSON.stringify(value)]);
}

/** JSON by hand, because a name that comes twice is what no serialiser writes. */
export function spelled(draw: Draw, entries: readonly Entry[]): string {
  const space = once(draw, 12) ? ' ' : '';
  const text = `{${space}${entries.map(([name, value]) => `${nameOf(draw, name)}${space}:${value}`).join(',')}${space}}`;
  if (!once(draw, 80)) return text;
  return pick(draw, [`${text}\n`, `\ufeff${text}`, `${text}\0`, `${text}{}`, `[${text}]`, text.slice(0, -1), '""']);
}

/** The same name, perhaps with its first letter as an escape. */
function nameOf(draw: Draw, name: string): string {
  const escaped = `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}"`;
  return once(draw, 60) ? escaped : JSON.stringify(name);
}

/** Another spelling of the same bytes, or parts too many or too few. */
function respelledToken(draw: Draw, token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  return pick(draw, [
    `${token}=`,
    token.replaceAll('-', '+').replaceAll('_', '/'),
    `${header}.${payload}.`,
    `${header}.${payload}`,
    `${token}.${signature}`,
    `${header}..${signature}`,
    `${header}.${payload}.${signature.slice(0, -1)}${pick(draw, ['A', 'B', 'Q', 'g', 'w', 'x'])}`,
    `${token}A`,
    `${header}.${payload}.${signature}${'A'.repeat(8192)}`,
  ]);
}
