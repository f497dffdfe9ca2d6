/** Keys of clients and of a thief, made once for all copies of the program. */
import { proofKey } from '../../support/dpop.js';

export const keys = {
  ES256: proofKey('ES256'),
  EdDSA: proofKey('EdDSA'),
  Ed25519: proofKey('Ed25519'),
  PS256: proofKey('PS256'),
  RS256: proofKey('RS256'),
};

export const thief = proofKey('ES256');
export const slow = proofKey('ES384');
export const large = proofKey('RS256', 5_120);
