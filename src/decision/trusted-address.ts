import { BlockList, isIP, isIPv4 } from 'node:net';

/** `address` or `address/prefix length`. */
const block = /^([0-9A-Fa-f:.]+)(?:\/(0|[1-9][0-9]{0,2}))?$/;

/** An IPv4 address as a socket that listens for both families reports it. */
const ipv4Mapped = /^::ffff:([0-9]{1,3}(?:\.[0-9]{1,3}){3})$/i;

const ipv4Bits = 32;
const ipv6Bits = 128;

interface AddressBlock {
  readonly address: string;
  readonly family: 'ipv4' | 'ipv6';
  readonly prefixLength: number;
}

/** Tells whether a text is an IP address or a CIDR block; IPv4 ones are written as such, not mapped into IPv6. */
export function isAddressBlock(text: string): boolean {
  return readBlock(text) !== null;
}

/** Makes the test whether an address lies in one of these blocks. What is no block holds no address. */
export function createAddressTest(blocks: readonly string[]): (address: string) => boolean {
  if (blocks.length === 0) return () => false;
  const list = new BlockList();
  for (const text of blocks) {
    const read = readBlock(text);
    if (read !== null) list.addSubnet(read.address, read.prefixLength, read.family);
  }
  return (address) => {
    const plain = plainAddress(address);
    const version = isIP(plain);
    return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6');
  };
}

/** The address of a socket's other end as the rest of the world writes it: no IPv4 mapped into IPv6, no zone. */
export function plainAddress(address: string): string {
  // Almost every address is plain, and each request asks.
  if (!address.includes(':')) return address;
  const [withoutZone = ''] = address.split('%', 1);
  return ipv4Mapped.exec(withoutZone)?.[1] ?? withoutZone;
}

function readBlock(text: string): AddressBlock | null {
  const [, address = '', prefix] = block.exec(text) ?? [];
  if (isIP(address) === 0 || ipv4Mapped.test(address)) return null;
  const bits = isIPv4(address) ? ipv4Bits : ipv6Bits;
  const prefixLength = prefix === undefined ? bits : Number(prefix);
  return prefixLength > bits ? null : { address, family: bits === ipv4Bits ? 'ipv4' : 'ipv6', prefixLength };
}
