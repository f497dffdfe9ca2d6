/** Checks of proofs, each with the text of the compiled program that takes it out. */
import type { PlantedFault } from '../profiles/faults.js';

const proof = 'decision/binding/dpop-proof.js';
const target = 'decision/binding/target-uri.js';

const jwk = 'decision/token/jwk.js';

/** An algorithm that counts, taken out of the list, and one that does not, put into it. */
const listed = ['ES256', 'Ed25519', 'EdDSA', 'PS256', 'RS256'].map((name): PlantedFault => {
  const entry = `['${name}', '${name === 'Ed25519' ? 'EdDSA' : name}'],`;
  return { name: `${name} is no algorithm of proofs`, file: proof, from: entry, to: '' };
});
const unlisted = ['PS384', 'PS512', 'RS384', 'RS512'].map((name): PlantedFault => ({
  name: `${name} is an algorithm of proofs`,
  file: proof,
  from: "['RS256', 'RS256'],",
  to: `['RS256', 'RS256'], ['${name}', '${name}'],`,
}));

export const plantedFaults: readonly PlantedFault[] = [
  // The form.
  { name: 'a proof may be longer', file: proof, from: 'encoded.length > maxProofLength', to: 'false' },
  {
    name: 'a proof may be as long and one more',
    file: proof,
    from: 'encoded.length > maxProofLength',
    to: 'encoded.length > maxProofLength + 1',
  },
  {
    name: 'a proof has to be shorter',
    file: proof,
    from: 'encoded.length > maxProofLength',
    to: 'encoded.length >= maxProofLength',
  },
  { name: 'a signature has several spellings', file: proof, from: '!isCanonicalBase64Url(signature) ||', to: '' },
  { name: 'claims have several spellings', file: proof, from: '|| !isCanonicalBase64Url(payload)', to: '' },
  {
    name: 'a header has several spellings',
    file: proof,
    from: 'isCanonicalBase64Url(encoded) ? objectOf(encoded) : null',
    to: 'objectOf(encoded)',
  },
  {
    name: 'a member may be named twice',
    file: 'lib/strict-json.js',
    from: 'if (tally.members !== members)',
    to: 'if (false)',
  },
  {
    name: 'members may be nested deeper',
    file: proof,
    from: 'const maxProofDepth = 4;',
    to: 'const maxProofDepth = 5;',
  },
  {
    name: 'members are nested no deeper than now',
    file: proof,
    from: 'const maxProofDepth = 4;',
    to: 'const maxProofDepth = 3;',
  },
  { name: 'claims are there', file: proof, from: 'claims === null ?', to: 'false ?' },
  // The header.
  { name: 'any typ counts', file: proof, from: 'typ !== proofType ||', to: '' },
  {
    name: 'members of a header are ignored',
    file: proof,
    from: '!Object.keys(header).every((name) => knownMembers.has(name))',
    to: 'false',
  },
  { name: 'a header has no kid', file: proof, from: ", 'kid']", to: ']' },
  ...listed,
  ...unlisted,
  {
    name: 'algorithms have names in any case',
    file: proof,
    from: "['RS256', 'RS256'],",
    to: "['RS256', 'RS256'], ['es256', 'ES256'],",
  },
  { name: 'a jwk is there', file: proof, from: '|| !isJsonObject(jwk)', to: '' },
  { name: 'alg of a key has other names', file: proof, from: 'algorithms.get(alg) ?? alg', to: 'alg' },
  // The key.
  {
    name: 'alg of a key counts for nothing',
    file: jwk,
    from: 'const named = possible.find((algorithm) => algorithm === alg);',
    to: 'const named = first;',
  },
  {
    name: 'use of a key counts for nothing',
    file: jwk,
    from: "if (use !== rules.use && !(rules.use === 'sig' && use === undefined))",
    to: 'if (false)',
  },
  {
    name: 'key_ops of a key count for nothing',
    file: jwk,
    from: 'if (operations !== undefined &&',
    to: 'if (false &&',
  },
  {
    name: 'private keys count',
    file: jwk,
    from: 'privateMembers.some((name) => jwk[name] !== undefined)',
    to: 'false',
  },
  { name: 'small keys count', file: jwk, from: 'const minModulusBits = 2048;', to: 'const minModulusBits = 512;' },
  {
    name: 'slow keys count',
    file: proof,
    from: 'isSlowToVerify(key, algorithm) ? null : key',
    to: 'key',
  },
  {
    name: 'large keys count',
    file: 'decision/token/compact-jws.js',
    from: 'modulusLength > fastModulusBits ||',
    to: '',
  },
  {
    name: 'long exponents count',
    file: 'decision/token/compact-jws.js',
    from: '|| publicExponent > usualExponent',
    to: '',
  },
  { name: 'points are on their curve', file: proof, from: 'catch {', to: 'catch (error) { throw error;' },
  { name: 'any key counts', file: proof, from: 'key.thumbprint !== request.key', to: 'false' },
  {
    name: 'members of a thumbprint have any order',
    file: 'decision/binding/thumbprint.js',
    from: 'Object.keys(publicKey).sort()',
    to: 'Object.keys(publicKey)',
  },
  {
    name: 'signatures are not checked',
    file: proof,
    from: '!verifySignature(parts, publicKey, key.algorithm)',
    to: 'false',
  },
  // The claims.
  { name: 'any jti counts', file: proof, from: '!isTokenId(jti)', to: 'false' },
  {
    name: 'a jti may be longer',
    file: 'decision/token/service-token.js',
    from: 'maxTokenIdLength = 256',
    to: 'maxTokenIdLength = 257',
  },
  { name: 'any method counts', file: proof, from: 'htm !== method', to: 'false' },
  {
    name: 'a method has any case',
    file: proof,
    from: 'htm !== method',
    to: 'String(htm).toUpperCase() !== method',
  },
  { name: 'a list with a target is a target', file: proof, from: "|| typeof htu !== 'string'", to: '' },
  { name: 'any target counts', file: proof, from: '!namesTarget(htu, path, origins)', to: 'false' },
  {
    name: 'any origin counts',
    file: target,
    from: 'origins.has(originOf(scheme.toLowerCase(), authority.toLowerCase()))',
    to: 'true',
  },
  { name: 'any path counts', file: target, from: 'isSamePath(named, path)', to: 'true' },
  { name: 'a path is compared by its bytes alone', file: target, from: '|| normalized(a) === normalized(b)', to: '' },
  { name: 'whatever is escaped is no escape', file: target, from: 'unreserved.test(character)', to: 'true' },
  { name: 'escapes have one case', file: target, from: 'octet.toUpperCase()', to: 'octet' },
  { name: 'a host is compared by case', file: target, from: 'authority.toLowerCase()', to: 'authority' },
  { name: 'a scheme is compared by case', file: target, from: 'scheme.toLowerCase()', to: 'scheme' },
  {
    name: 'standard ports are no spelling',
    file: target,
    from: "port !== '' && authority.endsWith(port)",
    to: 'false',
  },
  {
    name: 'any port is a standard one',
    file: target,
    from: "const port = standardPorts[scheme] ?? '';",
    to: "const [port = ''] = /:\\d+$/.exec(authority) ?? [];",
  },
  {
    name: 'a query is no part of a target',
    file: target,
    from: '(\\/[^?#\\\\\\s]*)?$/i',
    to: '(\\/[^?#\\\\\\s]*)?(?:\\?.*)?$/i',
  },
  {
    name: 'a fragment is no part of a target',
    file: target,
    from: '(\\/[^?#\\\\\\s]*)?$/i',
    to: '(\\/[^?#\\\\\\s]*)?(?:#.*)?$/i',
  },
  { name: 'a user is no part of a target', file: target, from: ':\\/\\/([^/?#@', to: ':\\/\\/(?:[^/?#@]*@)?([^/?#@' },
  { name: 'text stands before a target', file: target, from: '/^(https?)', to: '/(https?)' },
  { name: 'any token counts', file: proof, from: "ath !== hash('sha256', token, 'base64url')", to: 'false' },
  // Its time.
  { name: 'parts of a second count', file: proof, from: '!isNumericDate(iat)', to: "typeof iat !== 'number'" },
  { name: 'old proofs count', file: proof, from: 'nowMs >= endsAtMs', to: 'false' },
  { name: 'a proof counts at its end', file: proof, from: 'nowMs >= endsAtMs', to: 'nowMs > endsAtMs' },
  {
    name: 'old proofs count a moment longer',
    file: proof,
    from: 'maxAgeMs + clockSkewMs;',
    to: 'maxAgeMs + clockSkewMs + 1000;',
  },
  { name: 'old proofs count by our clock alone', file: proof, from: 'maxAgeMs + clockSkewMs;', to: 'maxAgeMs;' },
  { name: 'proofs of tomorrow count', file: proof, from: 'iat * 1_000 > nowMs + clockSkewMs', to: 'false' },
  {
    name: 'no clock may be as far ahead as it may',
    file: proof,
    from: 'iat * 1_000 > nowMs + clockSkewMs',
    to: 'iat * 1_000 >= nowMs + clockSkewMs',
  },
  {
    name: 'clocks may be a second further ahead',
    file: proof,
    from: 'iat * 1_000 > nowMs + clockSkewMs',
    to: 'iat * 1_000 > nowMs + clockSkewMs + 1_000',
  },
  {
    name: 'no clock is ahead',
    file: proof,
    from: 'iat * 1_000 > nowMs + clockSkewMs',
    to: 'iat * 1_000 > nowMs',
  },
];
