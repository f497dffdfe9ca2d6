/** Tokens bound to anything, with whatever their senders show, judged by the product and by the model. */
import { createHash } from 'node:crypto';
import { requiredProof } from '../../../src/decision/binding/confirmation.js';
import { verifyDpopProof } from '../../../src/decision/binding/dpop-proof.js';
import { isNonce, nonceAt } from '../../../src/decision/binding/nonce.js';
import { responses, type Denial } from '../../../src/decision/denial.js';
import type { JsonValue } from '../../../src/lib/strict-json.js';
import { provePossession } from '../../../src/proxy/auth/prove-possession.js';
import { makeProof } from '../../support/dpop.js';
import { drawFrom, pick, type Draw } from '../draw.js';
import { keys, thief } from './keys.js';
import { judgePossession, type Own, type Sent } from './model-possession.js';
import type { ProofReport } from './proof-campaign.js';

const nowMs = 1_750_000_020_500;
const token = 'a.good.token';
const origin = 'https://orders.example';
const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url');
const own: Own = { key: keys.ES256.thumbprint, thiefsKey: thief.thumbprint, certificate: digestOf('own') };
const nonceKeys = { first: Buffer.alloc(32, 1), second: Buffer.alloc(32, 2), unknown: Buffer.alloc(32, 3) };
const minuteMs = 60_000;

const confirmations: readonly { readonly cnf: unknown }[] = [
  { cnf: undefined },
  ...Array.from({ length: 4 }, () => ({ cnf: { jkt: own.key } })),
  { cnf: { 'x5t#S256': own.certificate } },
  { cnf: { jkt: own.key, 'x5t#S256': own.certificate } },
  { cnf: { jkt: own.key, 'x5t#S256': digestOf('another') } },
  { cnf: { jkt: thief.thumbprint } },
  { cnf: { 'x5t#S256': digestOf('another') } },
  { cnf: { jkt: own.key, jwk: {} } },
  { cnf: { jkt: own.key, x5t: own.certificate } },
  { cnf: { jwk: {} } },
  { cnf: { jkt: `${own.key}=` } },
  { cnf: { jkt: own.key, 'x5t#S256': 'short' } },
  { cnf: { 'x5t#S256': null } },
  { cnf: { jkt: null } },
  { cnf: {} },
  { cnf: null },
  { cnf: [] },
  { cnf: 'jkt' },
];

function sentBy(draw: Draw): Sent {
  return {
    ...pick(draw, confirmations),
    binding: pick(draw, ['accept', 'accept', 'require', 'none'] as const),
    scheme: pick(draw, ['DPoP', 'DPoP', 'Bearer'] as const),
    proof: pick(draw, ['own', 'own', 'thief', 'none'] as const),
    nonce: pick(draw, [
      { minutes: 0, key: 'first' },
      { minutes: 5, key: 'second' },
      { minutes: 7, key: 'first' },
      { minutes: -3, key: 'first' },
      { minutes: 1, key: 'unknown' },
      { minutes: 0, key: 'likened' },
      { minutes: 0, key: 'cut' },
      null,
    ] as const),
    certificate: pick(draw, ['own', 'own', 'thief', 'none'] as const),
    dpop: pick(draw, ['with', 'with nonces', 'without'] as const),
    store: pick(draw, ['new', 'new', 'used', 'unavailable', 'rejects'] as const),
    proved: pick(draw, [null, null, 'own', 'thief', 'none'] as const),
  };
}

export async function runPossession(seed: number, cases: number, maxFaults = 5): Promise<ProofReport> {
  const faults: string[] = [];
  let [done, accepted] = [0, 0];
  while (done < cases && faults.length < maxFaults) {
    const sent = sentBy(drawFrom(seed, done));
    const denial = await judgedByProduct(sent);
    const said = denial === null ? 200 : responses[denial.reason].status;
    const expected = judgePossession(sent, own);
    if (said !== expected) faults.push(`case ${done}: ${JSON.stringify(sent)}: ${said}, not ${expected}`);
    if (said === 200) accepted += 1;
    done += 1;
  }
  return { cases: done, accepted, faults };
}

async function judgedByProduct(sent: Sent): Promise<Pick<Denial, 'reason'> | null> {
  const confirmation = requiredProof(sent.cnf as JsonValue | undefined, sent.binding);
  if (typeof confirmation === 'string') return { reason: confirmation };
  const rules = { origins: new Set([origin]), maxAgeMs: minuteMs, clockSkewMs: 5_000 };
  const taken = [nonceKeys.first, nonceKeys.second] as const;
  const asked = sent.dpop === 'with nonces' ? (nonce: string) => isNonce(nonce, nowMs, taken) : null;
  const proof = proofOf(sent);
  return provePossession(
    {
      confirmation: confirmation ?? undefined,
      saysBound: sent.scheme === 'DPoP',
      verifyProof:
        proof === null || sent.dpop === 'without'
          ? null
          : (key) =>
              verifyDpopProof(proof, { method: 'GET', path: '/orders', token, key, nowMs, isNonce: asked }, rules),
      certificate:
        sent.certificate === 'none'
          ? null
          : { digest: digestOf(sent.certificate), isVerified: false, name: null, endsAtMs: Infinity },
      ignoresBinding: sent.binding === 'none',
      nowMs,
      ...(sent.proved === null ? {} : { provedKey: thumbprintOf(sent.proved) }),
    },
    { use: async () => (sent.store === 'rejects' ? Promise.reject(new Error('away')) : Promise.resolve(sent.store)) },
  );
}

function proofOf({ proof, nonce }: Sent): string | null {
  if (proof === 'none') return null;
  const input = { uri: `${origin}/orders`, token, nowMs, claims: { nonce: nonceOf(nonce) } };
  return makeProof(proof === 'own' ? keys.ES256 : thief, input);
}

function nonceOf(nonce: Sent['nonce']): string | undefined {
  if (nonce === null) return undefined;
  const { minutes, key } = nonce;
  const made = nonceAt(nowMs - minutes * minuteMs, [nonceKeys[key === 'likened' || key === 'cut' ? 'first' : key]]);
  if (key === 'cut') return made.slice(0, 6);
  return key === 'likened'
    ? made.replace(/./g, (character) => String.fromCharCode(character.charCodeAt(0) + 256))
    : made;
}

function thumbprintOf(whose: 'own' | 'thief' | 'none'): string | null {
  return whose === 'none' ? null : whose === 'own' ? own.key : thief.thumbprint;
}
