/** A TLS record of application data that nobody encrypted: whoever reads it takes the connection for broken. */
export function brokenRecord(): Buffer {
  const payload = Buffer.alloc(32, 7);
  return Buffer.concat([Buffer.from([0x17, 3, 3, 0, payload.length]), payload]);
}
