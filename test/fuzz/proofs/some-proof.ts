/** Proofs with up to two things wrong with them, or said otherwise than usual. */
import { makeProof, otherSpelling, type ProofInput, type ProofKey } from '../../support/dpop.js';
import { once, pick, type Draw } from '../draw.js';
import { keys, thief, uncounted } from './keys.js';

/** What a proof is made for. */
export interface MadeFor {
  readonly method: string;
  readonly origin: string;
  /** Without a query. */
  readonly path: string;
  readonly token: string;
  readonly nowMs: number;
  /** `undefined`: it repeats none. */
  readonly nonce?: string | undefined;
}

type Input = ProofInput & Required<Pick<ProofInput, 'claims' | 'header'>>;
type Change = (input: Input, draw: Draw, key: ProofKey, madeFor: MadeFor) => Partial<ProofInput>;

/** The value may be nothing: then the member is left out. */
const valueOf = (draw: Draw, values: readonly unknown[]): unknown => values[draw.below(values.length)];

const junk = [undefined, null, '', 5, true, ['x'], {}] as const;

const claim =
  (name: string, valuesFor: (madeFor: MadeFor) => readonly unknown[]): Change =>
  ({ claims }, draw, _key, madeFor) => {
    const values = once(draw, 4) ? junk : valuesFor(madeFor);
    return { claims: { ...claims, [name]: valueOf(draw, values) } };
  };
const member =
  (name: string, ...values: readonly unknown[]): Change =>
  ({ header }, draw) => ({
    header: { ...header, [name]: valueOf(draw, once(draw, 4) ? junk : values) },
  });
const inKey =
  (...changes: readonly ((key: ProofKey) => object)[]): Change =>
  ({ header }, draw, key) => ({ header: { ...header, jwk: { ...key.jwk, ...pick(draw, changes)(key) } } });

/** The same target in other words. */
function sameTargets({ origin, path }: MadeFor): readonly string[] {
  const [scheme = '', host = ''] = origin.split('://');
  const standardPort = scheme === 'https' ? ':443' : ':80';
  return [
    origin + path.replaceAll('~', '%7e'),
    origin + path.replace(/%../g, (octet) => octet.toLowerCase()),
    `${origin}${standardPort}${path}`,
    `${scheme.toUpperCase()}://${host}${path}`,
    `${scheme.toUpperCase()}://${host.replace(/^./, (first) => first.toUpperCase())}${path}`,
  ];
}

/** Other spellings of a target, and other targets. */
function targetsLike(madeFor: MadeFor): readonly unknown[] {
  const { origin, path } = madeFor;
  const [scheme = '', host = ''] = origin.split('://');
  return [
    origin + path,
    [origin + path],
    ...sameTargets(madeFor),
    origin + path.replaceAll('~', '%7E'),
    origin + path.replaceAll('o', '%6f'),
    origin + path.replaceAll('/', '%2F').replace('%2F', '/'),
    `${origin}${path}?a=b`,
    `${origin}${path}?`,
    `${origin}${path}#a`,
    `${origin}${path}/`,
    `${origin}${path}1`,
    `${origin}${path.toUpperCase()}`,
    `${origin}/x/..${path}`,
    `${origin}/.${path}`,
    `${origin}/${path}`,
    `${origin} ${path}`,
    ` ${origin}${path}`,
    `${origin}\\${path.slice(1)}`,
    `${origin}:8443${path}`,
    `${origin}.${path}`,
    `${scheme === 'https' ? 'http' : 'https'}://${host}${path}`,
    `wss://${host}${path}`,
    `https://a@${host}${path}`,
    `https://other.example${path}`,
    `https://other.example/${origin}${path}`,
    path,
    origin,
  ];
}

/** One that is signed, with its own algorithm in the header, by another key of the client's. */
const bySomeKey: Change = ({ header }, draw) => {
  const signer = pick(draw, [...Object.values(keys), ...Object.values(uncounted), thief]);
  return { signer, header: { ...header, alg: signer.algorithm, jwk: signer.jwk } };
};

const changes: readonly Change[] = [
  claim('jti', () => ['used-1', 'away-1', 'x'.repeat(256), 'x'.repeat(257), 'a b', '\u00e9', 'a\n']),
  claim('htm', ({ method }) => ['POST', method.toLowerCase(), 'GET', 'HEAD']),
  ...Array.from({ length: 6 }, () => claim('htu', targetsLike)),
  claim('htu', sameTargets),
  claim('iat', ({ nowMs }) => [...edges(nowMs), nowMs, String(Math.floor(nowMs / 1_000)), nowMs / 1_000 + 0.25]),
  (input, draw, _key, { nowMs }) => ({ claims: { ...input.claims, iat: pick(draw, edges(nowMs)) } }),
  (input, draw, _key, { nowMs }) => ({ claims: { ...input.claims, iat: pick(draw, edges(nowMs)) } }),
  claim('ath', ({ token }) => [token, 'x'.repeat(43)]),
  claim('nonce', () => ['nonce-of-now', 'nonce-of-before', 'x']),
  claim('more', () => [nestedTo(3), nestedTo(4)]),
  member('typ', 'JWT', 'DPOP+jwt', 'application/dpop+jwt'),
  member('alg', 'none', 'HS256', 'es256', 'Es256', 'ES384', 'EdDSA', 'Ed25519', 'PS256', 'RS256', 'RS512'),
  ({ header }, _draw, { algorithm }) => ({ header: { ...header, alg: algorithm.toLowerCase() } }),
  member('kid', 'x', 5),
  member('crit', ['b64'], []),
  member('b64', true),
  member('jku', 'https://x'),
  member('jwk', thief.jwk, uncounted.ES384.jwk, { kty: 'oct', k: 'AAAA' }),
  inKey(({ privateKey }) => ({ d: privateKey.export({ format: 'jwk' }).d })),
  inKey(
    () => ({ k: 'AA' }),
    () => ({ use: 'enc' }),
    () => ({ use: 'sig' }),
    () => ({ key_ops: ['verify'] }),
    () => ({ key_ops: ['sign'] }),
    () => ({ kid: 'x' }),
    () => ({ x5c: nestedTo(2) }),
    () => ({ x5c: nestedTo(3) }),
  ),
  inKey(
    ({ algorithm }) => ({ alg: algorithm }),
    () => ({ alg: 'EdDSA' }),
    () => ({ alg: 'Ed25519' }),
    ({ algorithm }) => ({ alg: algorithm === 'RS256' ? 'PS256' : 'HS256' }),
  ),
  bySomeKey,
  () => ({ signer: thief }),
  () => ({ token: 'another.good.token' }),
  () => ({ method: 'DELETE' }),
  (_input, draw) => ({ length: pick(draw, lengths) }),
  (_input, draw) => ({ length: pick(draw, lengths) }),
  (_input, draw) => {
    const [changed, isOtherwise] = [pick(draw, ['header', 'claims'] as const), once(draw, 4)];
    return { respelled: (text, part) => (part !== changed ? text : isOtherwise ? `${text}=` : otherSpelling(text)) };
  },
  (_input, draw) => {
    const [changed, write] = [pick(draw, ['header', 'claims'] as const), pick(draw, rewritings)];
    return { rewritten: (text, part) => (part === changed ? write(text) : text) };
  },
];

/** What is encoded in one more than a multiple of four comes out shorter. */
const lengths = [4_096, 4_097, 4_097, 4_098, 4_099];

/** Both sides of both edges of the time in which a proof counts, for a minute and with clocks five seconds apart. */
function edges(nowMs: number): readonly number[] {
  const nowS = Math.floor(nowMs / 1_000);
  return [nowS - 65, nowS - 64, nowS + 5, nowS + 6];
}

/** Arrays in arrays. */
function nestedTo(depth: number): unknown {
  return depth === 0 ? 'x' : [nestedTo(depth - 1)];
}

/** JSON that two readers may read differently, or that is none. */
const rewritings: readonly ((json: string) => string)[] = [
  (json) => json.replace('{', '{"typ":"dpop+jwt","htm":"GET",'),
  (json) => json.replace('{', '{"jti":"another",'),
  (json) => `\u{feff}${json}`,
  (json) => ` ${json}\n`,
  (json) => `${json},`,
  (json) => `[${json}]`,
  (json) => json.replace('"htm"', '"\\u0068tm"').replace('"alg"', '"\\u0061lg"'),
];

/** Said of the text itself. */
const respellings: readonly ((proof: string) => string)[] = [
  (proof) => `${proof}=`,
  (proof) => otherSpelling(proof.split('.')[2] ?? '').replace(/^/, `${proof.split('.').slice(0, 2).join('.')}.`),
  (proof) => `${proof}.`,
  (proof) => `${proof}, ${proof}`,
  (proof) => proof.slice(0, -2),
  (proof) => `${proof}AA`,
  (proof) => proof.replace('.', '=.'),
  (proof) => ` ${proof}`,
  (proof) => proof.split('.').slice(0, 2).join('.'),
  () => '',
];

/** A proof by this key with so many changes, and how it was made. */
export function someProof(
  draw: Draw,
  key: ProofKey,
  madeFor: MadeFor,
  count: number,
): { readonly proof: string; readonly input: ProofInput } {
  const { method, origin, path, token, nowMs, nonce } = madeFor;
  let input: Input = { method, uri: origin + path, token, nowMs, claims: { nonce }, header: {} };
  for (let left = count; left > 0; left -= 1) input = { ...input, ...pick(draw, changes)(input, draw, key, madeFor) };
  const made = makeProof(key, input);
  return { proof: once(draw, 20) ? pick(draw, respellings)(made) : made, input };
}
