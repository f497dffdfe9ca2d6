/** A client of TLS 1.3 that changes its keys as it likes (KeyUpdate, RFC 8446 §4.6.3), for which Node has no call. */
import { createCipheriv, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect } from 'node:tls';
import type { Scope } from './scope.js';

interface KeyUpdater {
  /** Records that change its keys so many times, and ask for a change of the other side's where that is wanted. */
  readonly updates: (count: number, asks: boolean) => Buffer;
  /** A record of these bytes, with the keys of the last change. */
  readonly data: (text: string) => Buffer;
  /** Sends records in their order. */
  readonly send: (records: Buffer) => void;
  readonly received: () => string;
  readonly isClosed: () => boolean;
}

interface UpdaterOptions {
  /** PEM of whoever vouches for `localhost`. */
  readonly ca: string;
  readonly protocol?: string;
}

const recordTypes = { handshake: 22, data: 23 };

const keyLine = /^CLIENT_TRAFFIC_SECRET_0 \S+ (\S+)/;

/** HKDF-Expand-Label with SHA-256 and no context (RFC 8446 §7.1). */
function expand(secret: Buffer, name: string, length: number): Buffer {
  const label = Buffer.from(`tls13 ${name}`);
  const info = Buffer.concat([Buffer.from([0, length, label.length]), label, Buffer.from([0, 1])]);
  return createHmac('sha256', secret).update(info).digest().subarray(0, length);
}

/** Connects, and from then on makes its records itself; what the other side says is read by Node. */
export async function connectKeyUpdater(
  t: Scope,
  port: number,
  { ca, protocol = 'http/1.1' }: UpdaterOptions,
): Promise<KeyUpdater> {
  const socket = connectTcp(port, '127.0.0.1').on('error', () => undefined);
  const ciphers = 'TLS_AES_128_GCM_SHA256';
  const tls = connect({
    socket,
    ca,
    ciphers,
    minVersion: 'TLSv1.3',
    servername: 'localhost',
    ALPNProtocols: [protocol],
  });
  t.teardown(() => {
    tls.destroy();
    socket.destroy();
  });
  let secret: Buffer = Buffer.alloc(0);
  let [sent, received] = [0, ''];
  tls
    .on('error', () => undefined)
    .on('data', (bytes: Buffer) => (received += bytes.toString('latin1')))
    .on('keylog', (line: Buffer) => {
      const found = keyLine.exec(line.toString());
      if (found !== null) secret = Buffer.from(found[1] ?? '', 'hex');
    });
  await once(tls, 'secureConnect');
  // Node says so before it has sent the last of its handshake.
  await new Promise((resolve) => setImmediate(resolve));
  const record = (type: number, content: Buffer): Buffer => {
    const nonce = expand(secret, 'iv', 12);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ sent) >>> 0, 8);
    const head = Buffer.from([recordTypes.data, 3, 3, 0, 0]);
    head.writeUInt16BE(content.length + 1 + 16, 3);
    const cipher = createCipheriv('aes-128-gcm', expand(secret, 'key', 16), nonce).setAAD(head);
    sent += 1;
    const encrypted = cipher.update(Buffer.concat([content, Buffer.from([type])]));
    return Buffer.concat([head, encrypted, cipher.final(), cipher.getAuthTag()]);
  };
  const update = (asks: boolean): Buffer => {
    const bytes = record(recordTypes.handshake, Buffer.from([24, 0, 0, 1, asks ? 1 : 0]));
    [secret, sent] = [expand(secret, 'traffic upd', 32), 0];
    return bytes;
  };
  return {
    updates: (count, asks) => Buffer.concat(Array.from({ length: count }, () => update(asks))),
    data: (text) => record(recordTypes.data, Buffer.from(text, 'latin1')),
    send: (records) => {
      socket.write(records);
    },
    received: () => received,
    isClosed: () => socket.closed,
  };
}
