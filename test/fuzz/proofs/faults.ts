/** Checks of proofs, each with the text of the compiled program that takes it out. */
import type { PlantedFault } from '../profiles/faults.js';

const proof = 'decision/binding/dpop-proof.js';
const target = 'decision/binding/target-uri.js';

export const plantedFaults: readonly PlantedFault[] = [
  { name: 'any typ counts', file: proof, from: 'typ !== proofType ||', to: '' },
  {
    name: 'members of a header are ignored',
    file: proof,
    from: '!Object.keys(header).every((name) => knownMembers.has(name))',
    to: 'false',
  },
  {
    name: 'private keys count',
    file: 'decision/token/jwk.js',
    from: 'privateMembers.some((name) => jwk[name] !== undefined)',
    to: 'false',
  },
  { name: 'any key counts', file: proof, from: 'key.thumbprint !== request.key', to: 'false' },
  {
    name: 'signatures are not checked',
    file: proof,
    from: '!verifySignature(parts, publicKey, key.algorithm)',
    to: 'false',
  },
  {
    name: 'slow keys count',
    file: proof,
    from: 'isSlowToVerify(key, algorithm) ? null : key',
    to: 'key',
  },
  { name: 'any jti counts', file: proof, from: '!isTokenId(jti)', to: 'false' },
  { name: 'any method counts', file: proof, from: 'htm !== method', to: 'false' },
  { name: 'any target counts', file: proof, from: '!namesTarget(htu, path, origins)', to: 'false' },
  {
    name: 'any origin counts',
    file: target,
    from: 'origins.has(originOf(scheme.toLowerCase(), authority.toLowerCase()))',
    to: 'true',
  },
  { name: 'any path counts', file: target, from: 'isSamePath(named, path)', to: 'true' },
  { name: 'a path is compared by its bytes alone', file: target, from: '|| normalized(a) === normalized(b)', to: '' },
  { name: 'a host is compared by case', file: target, from: 'authority.toLowerCase()', to: 'authority' },
  {
    name: 'standard ports are no spelling',
    file: target,
    from: "port !== '' && authority.endsWith(port)",
    to: 'false',
  },
  { name: 'any token counts', file: proof, from: "ath !== hash('sha256', token, 'base64url')", to: 'false' },
  { name: 'old proofs count', file: proof, from: 'nowMs >= endsAtMs', to: 'false' },
  {
    name: 'old proofs count a moment longer',
    file: proof,
    from: 'maxAgeMs + clockSkewMs;',
    to: 'maxAgeMs + clockSkewMs + 1000;',
  },
  { name: 'proofs of tomorrow count', file: proof, from: 'iat * 1_000 > nowMs + clockSkewMs', to: 'false' },
  { name: 'parts of a second count', file: proof, from: '!isNumericDate(iat)', to: "typeof iat !== 'number'" },
  { name: 'a signature has several spellings', file: proof, from: '!isCanonicalBase64Url(signature) ||', to: '' },
];
