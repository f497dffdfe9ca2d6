/** Slots of a Redis Cluster. */
export const slotCount = 16_384;

/** The slot of keys with this hash tag: CRC-16/XMODEM modulo 16384 (Redis Cluster specification, "Key distribution model"). */
export function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag, 'latin1')) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc % slotCount;
}
