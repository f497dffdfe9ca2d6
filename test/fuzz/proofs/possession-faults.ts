/** Checks of what a sender has to prove, each with the text of the compiled program that takes it out. */
import type { PlantedFault } from '../profiles/faults.js';

const confirmation = 'decision/binding/confirmation.js';
const certificate = 'decision/binding/certificate.js';
const possession = 'proxy/auth/prove-possession.js';
const nonce = 'decision/binding/nonce.js';
const proof = 'decision/binding/dpop-proof.js';

export const plantedFaults: readonly PlantedFault[] = [
  {
    name: 'members of cnf are ignored',
    file: confirmation,
    from: '!names.every((name) => members.has(name))',
    to: 'false',
  },
  { name: 'an empty cnf counts', file: confirmation, from: 'names.length === 0', to: 'false' },
  {
    name: 'any text is a digest',
    file: confirmation,
    from: '!names.every((name) => isDigest(cnf[name]))',
    to: 'false',
  },
  { name: 'require asks for nothing', file: confirmation, from: "binding === 'require'", to: 'false' },
  { name: 'no certificate is asked for', file: certificate, from: "denial('certificate_missing')", to: 'null' },
  { name: 'any certificate counts', file: certificate, from: 'shown.digest === certificate', to: 'true' },
  { name: 'a key counts for its bearer', file: possession, from: '!saysBound ||', to: '' },
  {
    name: 'the scheme says nothing',
    file: possession,
    from: 'key === null && saysBound && !ignoresBinding',
    to: 'false',
  },
  { name: 'a certificate settles a key', file: possession, from: 'refused !== null || key === null', to: 'true' },
  { name: 'whatever key was proved before counts', file: possession, from: 'asked.provedKey === key', to: 'true' },
  { name: 'used proofs count', file: possession, from: "denial('proof_replayed')", to: 'null' },
  {
    name: 'a store that is away lets pass',
    file: possession,
    from: "case 'unavailable':",
    to: "case 'unavailable': return null;",
  },
  {
    name: 'a store that fails lets pass',
    file: possession,
    from: "() => denial('store_unavailable')",
    to: '() => null',
  },
  {
    name: 'no nonce is asked for',
    file: proof,
    from: "isNonce !== null && !(typeof nonce === 'string' && isNonce(nonce))",
    to: 'false',
  },
  { name: 'old nonces count', file: nonce, from: 'made < now - stepsTaken', to: 'false' },
  { name: 'nonces of later count', file: nonce, from: 'made > now + stepsAhead', to: 'false' },
  {
    name: 'characters of nonces count by their last byte',
    file: nonce,
    from: "Buffer.from(nonce, 'utf8')",
    to: "Buffer.from(nonce, 'latin1')",
  },
  {
    name: 'a nonce may be as short as it likes',
    file: nonce,
    from: 'if (step.length < stepBytes)',
    to: 'if (false)',
  },
  {
    name: 'a nonce may be longer',
    file: nonce,
    from: 'given.length === expected.length &&',
    to: '',
  },
  { name: 'anybody makes nonces', file: nonce, from: '&& timingSafeEqual(given, expected)', to: '' },
  {
    name: 'the second key of nonces counts for nothing',
    file: nonce,
    from: 'keys.some(',
    to: 'keys.slice(0, 1).some(',
  },
];
