/** Stands in for `node:net` in a page: what an address is, and in which block it lies. */
import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js';

export function isIPv4(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text);
}

const zonePattern = /^[0-9A-Za-z.:-]+$/;

/**
 * The package reads numbers with zeros in front in the IPv4 address that one may end in, and fewer names of zones, than
 * anybody else.
 */
export function isIPv6(text: string): boolean {
  const [address = '', ...zones] = text.split('%');
  const dotted = address.includes('.') ? address.slice(address.lastIndexOf(':') + 1) : null;
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address) || (dotted !== null && !isIPv4(dotted))) return false;
  return zones.length === 0 || zonePattern.test(zones.join('%'));
}

export function isIP(text: string): 0 | 4 | 6 {
  return isIPv4(text) ? 4 : isIPv6(text) ? 6 : 0;
}

type Family = 'ipv4' | 'ipv6';

/** Asked of the other end of a connection alone, and there is none. */
export class SocketAddress {
  readonly address = '';

  constructor() {
    throw new Error('a page has no connections');
  }
}

/** Of IPv4 in IPv6 it says what Node.js says: both are the same address. */
export class BlockList {
  private readonly blocks: (readonly [IPv4 | IPv6, number])[] = [];

  addSubnet(address: string, prefixLength: number, _family: Family): void {
    this.blocks.push([read(address), prefixLength]);
  }

  check(address: string, _family: Family): boolean {
    const parsed = read(address);
    return this.blocks.some(([block, bits]) => isWithin(parsed, block, bits));
  }
}

/** The package takes an IPv6 address that ends in an IPv4 one for a mapped one, whatever it begins with. */
function read(address: string): IPv4 | IPv6 {
  const at = address.lastIndexOf(':') + 1;
  if (at === 0) return ipaddr.IPv4.parse(address);
  if (!address.includes('.')) return ipaddr.IPv6.parse(address);
  const [first = 0, second = 0, third = 0, fourth = 0] = ipaddr.IPv4.parse(address.slice(at)).octets;
  const groups = [first * 256 + second, third * 256 + fourth].map((group) => group.toString(16));
  return ipaddr.IPv6.parse(`${address.slice(0, at)}${groups.join(':')}`);
}

function isWithin(address: IPv4 | IPv6, block: IPv4 | IPv6, bits: number): boolean {
  if (block instanceof ipaddr.IPv6) {
    return (address instanceof ipaddr.IPv4 ? address.toIPv4MappedAddress() : address).match(block, bits);
  }
  if (address instanceof ipaddr.IPv4) return address.match(block, bits);
  return address.isIPv4MappedAddress() && address.toIPv4Address().match(block, bits);
}
