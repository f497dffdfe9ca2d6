/** Slots of a Redis Cluster. */
export const slotCount = 16_384;

/**
 * The slot of keys with this hash tag: CRC-16/XMODEM modulo 16384 (Redis Cluster specification, "Key distribution
 * model").
 */
export function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag, 'latin1')) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc % slotCount;
}

/**
 * A hash tag whose keys one primary serves, the same for all that know its slots: the first of a list that falls into
 * one of them.
 *
 * @param ranges first and last slot of each; none where there is no Cluster.
 */
export function tagOf(ranges: readonly (readonly [number, number])[]): string {
  const isServed = (slot: number): boolean =>
    ranges.length === 0 || ranges.some(([first, last]) => first <= slot && slot <= last);
  let number = 0;
  while (!isServed(slotOf(`primary-${String(number)}`))) number += 1;
  return `primary-${String(number)}`;
}
