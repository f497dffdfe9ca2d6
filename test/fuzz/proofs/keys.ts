/** Keys of clients and of a thief, made once for all copies of the program. */
import { proofKey, thumbprint } from '../../support/dpop.js';

/** By each algorithm that counts. */
export const keys = {
  ES256: proofKey('ES256'),
  EdDSA: proofKey('EdDSA'),
  Ed25519: proofKey('Ed25519'),
  PS256: proofKey('PS256'),
  RS256: proofKey('RS256'),
};

export const thief = proofKey('ES256');

/** A point that is not on its curve. */
const noPoint = { ...keys.ES256.jwk, y: keys.ES256.jwk.x ?? '' };

/** By algorithms that do not count; RSA keys that are too small, too large, and too slow; and what is no key. */
export const uncounted = {
  ES384: proofKey('ES384'),
  PS384: proofKey('PS384'),
  PS512: proofKey('PS512'),
  RS384: proofKey('RS384'),
  RS512: proofKey('RS512'),
  small: proofKey('RS256', 1_024),
  large: proofKey('RS256', 4_608),
  slow: proofKey('PS256', 2_048, 65_539),
  none: { ...keys.ES256, jwk: noPoint, thumbprint: thumbprint(noPoint) },
};
