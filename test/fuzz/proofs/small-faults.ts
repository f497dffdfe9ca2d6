/** Checks beside those of proofs, each with the text of the compiled program that takes it out. */
import type { PlantedFault } from '../profiles/faults.js';

const used = 'proxy/auth/used-proofs.js';
const challenges = 'decision/binding/challenges.js';
const problem = 'decision/http/problem-details.js';
const name = 'decision/binding/certificate-name.js';
const certificate = 'decision/binding/certificate.js';

export const usedProofFaults: readonly PlantedFault[] = [
  {
    name: 'after a fail-over any proof is asked for',
    file: used,
    from: 'if (isForgotten(proof, store.issuedBeforeFloorS()))',
    to: 'if (false)',
  },
  {
    name: 'a fail-over between asking and answering is not seen',
    file: used,
    from: '&& !isForgotten(proof, store.issuedBeforeFloorS())',
    to: '',
  },
  { name: 'no clock of a client is ahead', file: used, from: '* 1_000 + clockSkewMs', to: '* 1_000' },
  {
    name: 'a proof of the first second counts',
    file: used,
    from: 'issuedAtS * 1_000 <',
    to: 'issuedAtS * 1_000 + 1_000 <',
  },
  { name: 'whose key it was says nothing', file: used, from: '[proof.key]', to: "['']" },
  { name: 'the ids of all proofs are one', file: used, from: '[proof.id]', to: "['']" },
  { name: 'clocks of proxies are one', file: used, from: '+ proxyClocksMs', to: '' },
  {
    name: 'a use is forgotten early',
    file: used,
    from: 'proof.endsAtMs - nowMs + proxyClocksMs',
    to: '(proof.endsAtMs - nowMs) / 2',
  },
  {
    name: 'a store that does not answer lets pass',
    file: used,
    from: 'if (!reply.ok)',
    to: "if (!reply.ok) return 'new'; if (false)",
  },
  { name: 'a proof that was used is new', file: used, from: "return 'used'", to: "return 'new'" },
  { name: 'replicas are not asked', file: used, from: '(confirmedReplicas ?? 0) >= replicas', to: 'true' },
  { name: 'a reply that is none counts', file: used, from: "reserved.kind === 'acquired' && isKept", to: 'isKept' },
];

export const challengeFaults: readonly PlantedFault[] = [
  { name: 'DPoP is not asked for', file: challenges, from: 'if (!takesProofs)', to: 'if (true)' },
  { name: 'DPoP is asked for where no proof is taken', file: challenges, from: 'if (!takesProofs)', to: 'if (false)' },
  { name: 'nobody is told to use a nonce', file: challenges, from: 'error="use_dpop_nonce", ', to: '' },
  { name: 'nobody is told the algorithms', file: challenges, from: 'algs="${proofAlgorithms}"', to: '' },
  {
    name: 'a nonce is asked for and not given',
    file: challenges,
    from: "[...headers, 'DPoP-Nonce', nonce()]",
    to: 'headers',
  },
  {
    name: 'a nonce is the same for ever',
    file: challenges,
    from: "() => [...headers, 'DPoP-Nonce', nonce()]",
    to: "((first) => () => [...headers, 'DPoP-Nonce', first])(nonce())",
  },
  { name: 'Bearer is not asked for', file: challenges, from: '[...onlyBearer(), ', to: '[' },
  {
    name: 'a challenge says that the proof was wrong',
    file: problem,
    from: 'if (response.status === 401)',
    to: "if (response.status === 401 && denial.reason.startsWith('proof'))",
  },
  { name: 'whatever is refused is challenged', file: problem, from: 'if (response.status === 401)', to: 'if (true)' },
];

export const certificateNameFaults: readonly PlantedFault[] = [
  { name: 'of several URIs the first counts', file: name, from: '|| more.length > 0', to: '' },
  {
    name: 'any URI is a SPIFFE ID',
    file: name,
    from: '/^URI:(spiffe:\\/\\/[A-Za-z0-9._-]+(?:\\/[A-Za-z0-9._-]+)*)$/',
    to: '/^URI:(.*)$/',
  },
  { name: 'what follows a SPIFFE ID is cut off', file: name, from: '._-]+)*)$/', to: '._-]+)*)/' },
  { name: 'whatever name holds a SPIFFE ID is one', file: name, from: "name.startsWith('URI:')", to: 'true' },
  { name: 'a SPIFFE ID may be longer', file: name, from: 'id.length <= maxNameLength ? id : null', to: 'id' },
  { name: 'a subject may be longer', file: name, from: 'name.length <= maxNameLength &&', to: '' },
  { name: 'a subject may hold anything', file: name, from: '&& plainName.test(name)', to: '' },
  { name: 'a subject is read from its other end', file: name, from: '.reverse()', to: '' },
  { name: 'a subject is there', file: name, from: "(subject ?? '')", to: 'subject' },
  {
    name: 'nobody has to vouch for a name',
    file: certificate,
    from: 'shown?.isVerified === true',
    to: 'shown !== null',
  },
  { name: 'any name is taken', file: certificate, from: 'accepted.has(name)', to: 'true' },
];
