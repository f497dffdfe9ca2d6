import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net';
import { trimBlanks } from './text.js';
import { memoize, type MemoryLimits } from './memo.js';

/** `address` or `address/prefix length`. */
const block = /^([0-9A-Fa-f:.]+)(?:\/(0|[1-9][0-9]{0,2}))?$/;

/** An IPv4 address as a socket that listens for both families reports it. */
const ipv4Mapped = /^::ffff:([0-9]{1,3}(?:\.[0-9]{1,3}){3})$/i;

/** RFC 4291 section 2.5.5.2. */
const mappedBlock = new BlockList();
mappedBlock.addSubnet('::ffff:0:0', 96, 'ipv6');

const ipv4Bits = 32;
const ipv6Bits = 128;
/** Of 16 bits each. */
const ipv6Groups = 8;
const networkGroups = 4;
const siteGroups = 3;

/** What some proxies write behind an address: a port, for which an IPv6 address stands in brackets. */
const withPort = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::[0-9]{1,5})?$/;

/**
 * What may be an IPv6 address, and the zone behind it: with that, a long one is too long for the system, though Node.js
 * calls it an address.
 */
const ipv6Text = /^([0-9A-Fa-f:.]+)(?:%[0-9A-Za-z.:-]+)?$/;

/** Proxies between a client and us: nobody has more. Behind a list of them a caller could have us look at thousands. */
const maxHops = 32;

/**
 * Looking at an address takes some microseconds, and most clients of a proxy send more than one request: about 100 KiB.
 */
const memory: MemoryLimits = { maxNames: 512, maxLength: 128 };

/** RFC 1122 section 3.2.1.3 (g), RFC 4291 section 2.5.3. */
const loopbackBlocks: readonly string[] = ['127.0.0.0/8', '::1'];

interface AddressBlock {
  readonly address: string;
  readonly family: 'ipv4' | 'ipv6';
  readonly prefixLength: number;
}

/** Tells whether a text is an IP address or a CIDR block; IPv4 ones are written as such, not mapped into IPv6. */
export function isAddressBlock(text: string): boolean {
  return readBlock(text) !== null;
}

const isLoopbackAddress = createAddressTest(loopbackBlocks);

/**
 * Tells whether a text is an IPv4 address or block that is mapped into IPv6, however it is spelt: no address is
 * compared in this form.
 */
export function isMappedIpv4(text: string): boolean {
  const [address = ''] = text.split('/', 1);
  return isIPv6(address) && mappedBlock.check(address, 'ipv6');
}

/** Tells whether a host, by its name or its address, with or without brackets, is this machine alone. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return name === 'localhost' || isLoopbackAddress(name);
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

/**
 * From which no stranger on the Internet sends: of this network, loopback, multicast, private ones of IPv6 and what
 * nobody was given (RFC 6890).
 */
const nobodysBlocks: readonly string[] = ['0.0.0.0/8', '127.0.0.0/8', '224.0.0.0/3', '::/3', '4000::/2', '8000::/1'];

/** Tells whether these blocks together hold every address, of IPv4 or of IPv6, that a stranger may have. */
export function holdEveryAddress(blocks: readonly string[]): boolean {
  const read = [...nobodysBlocks, ...blocks].flatMap((text) => readBlock(text) ?? []);
  return (['ipv4', 'ipv6'] as const).some((family) =>
    holdEverything(read.filter((block) => block.family === family).map(prefixBits), 0),
  );
}

/** Whether every row of bits begins with one of these prefixes, which are alike up to here. */
function holdEverything(prefixes: readonly string[], length: number): boolean {
  if (prefixes.some((prefix) => prefix.length === length)) return true;
  return ['0', '1'].every((bit) => {
    const further = prefixes.filter((prefix) => prefix[length] === bit);
    return further.length > 0 && holdEverything(further, length + 1);
  });
}

function prefixBits({ address, family, prefixLength }: AddressBlock): string {
  const bits =
    family === 'ipv4'
      ? address.split('.').map((part) => Number(part).toString(2).padStart(8, '0'))
      : groupsOf(address).map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0'));
  return bits.join('').slice(0, prefixLength);
}

/** The address of a socket's other end as the rest of the world writes it: no IPv4 mapped into IPv6, no zone. */
export function plainAddress(address: string): string {
  // Almost every address is plain, and each request asks.
  if (!address.includes(':')) return address;
  const [withoutZone = ''] = address.split('%', 1);
  return ipv4Mapped.exec(withoutZone)?.[1] ?? withoutZone;
}

/** What an address is counted by, where a number of something is bounded for whoever sends from one place. */
export interface ClientNetworks {
  /** What one client has for sure: an IPv4 address, or the first 64 bits of an IPv6 one. */
  readonly own: string;
  /** What one customer of a provider may have whole: the first 48 bits of a global IPv6 address. Else `own`. */
  readonly site: string;
}

/**
 * The networks that an address is counted by. A host chooses the last 64 bits of an IPv6 address as it likes (RFC 4291
 * §2.5.4), and a site is given up to a /48 (RFC 6177 §2), which is 65,536 networks of 64 bits: whoever counts by these
 * alone counts a stranger that often. Only global addresses (2000::/3) have a site: a unique local /48 is a whole
 * organisation (RFC 4193 §3.2), of which strangers have none. An IPv4 address that a translator has put into IPv6
 * counts as itself (RFC 6052 §2.1).
 */
export function clientNetworks(address: string): ClientNetworks {
  // Looked at for connections and requests of strangers, of whom most come again.
  return rememberedNetworks(address);
}

const rememberedNetworks = memoize((address: string): ClientNetworks => {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return { own: plain, site: plain };
  const groups = groupsOf(plain);
  const translated = translatedIpv4(groups);
  if (translated !== null) return { own: translated, site: translated };
  const own = `${groups.slice(0, networkGroups).join(':')}::/64`;
  const isGlobal = /^[23][0-9a-f]{3}$/.test(groups[0] ?? '');
  return { own, site: isGlobal ? `${groups.slice(0, siteGroups).join(':')}::/48` : own };
}, memory);

/** The eight groups of an IPv6 address, in lower case and without zeros in front. */
function groupsOf(address: string): readonly string[] {
  const [front = '', back = ''] = withoutDots(address.toLowerCase()).split('::');
  const [before, behind] = [filledGroups(front), filledGroups(back)];
  // An address that is written whole has no gap to fill.
  const gap = Array.from({ length: Math.max(0, ipv6Groups - before.length - behind.length) }, () => '0');
  return [...before, ...gap, ...behind].map((group) => group.replace(/^0+(?=.)/, ''));
}

function filledGroups(part: string): readonly string[] {
  return part.split(':').filter((group) => group !== '');
}

/** Writes the IPv4 address that an IPv6 one may end in as two groups. */
function withoutDots(address: string): string {
  const at = address.lastIndexOf(':') + 1;
  const [first, second, third, fourth] = address.slice(at).split('.').map(Number);
  if (first === undefined || second === undefined || third === undefined || fourth === undefined) return address;
  return `${address.slice(0, at)}${(first * 256 + second).toString(16)}:${(third * 256 + fourth).toString(16)}`;
}

/** What stands in an address of 64:ff9b::/96; `null` of any other. */
function translatedIpv4(groups: readonly string[]): string | null {
  if (groups.slice(0, 6).join(':') !== '64:ff9b:0:0:0:0') return null;
  return groups
    .slice(6)
    .map((group) => Number.parseInt(group, 16))
    .flatMap((bits) => [bits >> 8, bits & 255])
    .join('.');
}

/**
 * Makes what finds the client behind proxies of these blocks, by `X-Forwarded-For` of a request that one of them sent:
 * the address furthest to the right that is none of theirs, for whatever is left of it is the client's own word. Where
 * it is no address, the last proxy before it is as far as one can see; where all are proxies, the first of them is.
 */
export function createClientFinder(blocks: readonly string[]): (peer: string, forwardedFor: string) => string {
  const isTrusted = createAddressTest(blocks);
  const find = memoize((forwardedFor) => {
    let client = '';
    for (const element of forwardedFor.split(',').slice(-maxHops).reverse()) {
      const address = forwardedAddress(trimBlanks(element));
      if (address === null) break;
      client = address;
      if (!isTrusted(address)) break;
    }
    return client;
  }, memory);
  return (peer, forwardedFor) => find(forwardedFor) || plainAddress(peer);
}

/** An element of the list, written as the system writes addresses (RFC 5952); `null` where it is none. */
function forwardedAddress(element: string): string | null {
  const [, bracketed, dotted] = withPort.exec(element) ?? [];
  const address = bracketed ?? dotted ?? element;
  if (isIPv4(address)) return bracketed === undefined ? address : null;
  const [, withoutZone] = ipv6Text.exec(address) ?? [];
  return withoutZone === undefined ? null : systemForm(withoutZone);
}

/** The system alone says what an IPv6 address is: what it does not take is none, and no error. */
function systemForm(address: string): string | null {
  try {
    return plainAddress(new SocketAddress({ address, family: 'ipv6' }).address);
  } catch {
    return null;
  }
}

function readBlock(text: string): AddressBlock | null {
  const [, address = '', prefix] = block.exec(text) ?? [];
  if (isIP(address) === 0 || isMappedIpv4(address)) return null;
  const bits = isIPv4(address) ? ipv4Bits : ipv6Bits;
  const prefixLength = prefix === undefined ? bits : Number(prefix);
  return prefixLength > bits ? null : { address, family: bits === ipv4Bits ? 'ipv4' : 'ipv6', prefixLength };
}
