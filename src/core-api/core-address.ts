import { isIP } from 'node:net';
import { accept, refuse, type Result } from '../lib/result.js';
import { createAddressTest, isLoopback, plainAddress } from '../lib/ip-ranges.js';

/** What an operator allows beyond the safe cases. */
export interface CoreAddressRules {
  /** Lets the API key travel in the clear to another machine. */
  readonly allowHttp: boolean;
  /** Lets the Core be on the public internet. */
  readonly allowPublic: boolean;
}

/** RFC 1918, RFC 6598 (shared by carriers and clouds), RFC 4193, and RFC 4291 §2.5.6 for one link. */
const isPrivate = createAddressTest([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
  'fe80::/10',
]);

const publicAddress = 'is a public address; the Core belongs on a private network';
const keyInTheClear = 'is another machine, which http would send the key in the clear';

/**
 * Tells whether the Core may be called at this IP address over this protocol. Whoever reaches the Core can mint any
 * identity, so it belongs on loopback or a private network, and its API key never travels to another machine in the
 * clear. A refusal is in words that follow the name of the address.
 */
export function judgeCoreAddress(
  protocol: 'http:' | 'https:',
  address: string,
  rules: CoreAddressRules,
): Result<null, string> {
  const plain = plainAddress(address);
  if (isIP(plain) === 0) return refuse('is no IP address');
  if (isLoopback(plain)) return accept(null);
  if (!isPrivate(plain) && !rules.allowPublic) {
    return refuse(`${publicAddress} (--allow-public-core, in programs allowPublicCore, overrides)`);
  }
  if (protocol === 'http:' && !rules.allowHttp) {
    return refuse(`${keyInTheClear} (--allow-http, in programs allowHttp, overrides)`);
  }
  return accept(null);
}
