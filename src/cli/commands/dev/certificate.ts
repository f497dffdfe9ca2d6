/** Certificates of `dev`: Node.js reads them and makes none. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** In PEM. */
interface SelfSigned {
  readonly certificate: string;
  readonly privateKey: string;
}

/** One that ends soon is warned of. */
const lifeMs = 90 * 24 * 60 * 60 * 1_000;

/** Clocks of one machine are one; a certificate that begins now may begin in a reader's future. */
const aheadMs = 60_000;

/**
 * Makes a certificate that vouches for itself (RFC 5280 §4.1), for 90 days, with a key of P-256.
 *
 * @param name of whom it is, ASCII: `CN`.
 * @param isLocal whether it is one of a server on this machine: for `localhost` and 127.0.0.1.
 */
export function makeCertificate(name: string, isLocal: boolean): SelfSigned {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const nowMs = Date.now();
  const owner = sequence(der(set, sequence(commonName, der(utf8String, Buffer.from(name)))));
  const toSign = sequence(
    der(tagged(0), der(integer, Buffer.of(2))), // version 3
    der(integer, Buffer.concat([Buffer.of(1), randomBytes(15)])),
    sequence(ecdsaWithSha256),
    owner,
    sequence(time(nowMs - aheadMs), time(nowMs + lifeMs)),
    owner,
    publicKey.export({ format: 'der', type: 'spki' }),
    ...(isLocal ? [der(tagged(3), sequence(sequence(subjectAltName, der(octetString, localNames))))] : []),
  );
  const signature = sign('sha256', toSign, privateKey);
  const certificate = sequence(
    toSign,
    sequence(ecdsaWithSha256),
    der(bitString, Buffer.concat([Buffer.of(0), signature])),
  );
  return {
    certificate: pemOf(certificate),
    privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  };
}

// Tags of DER (X.690 §8).
const integer = 0x02;
const bitString = 0x03;
const octetString = 0x04;
const objectId = 0x06;
const utf8String = 0x0c;
const utcTime = 0x17;
const set = 0x31;

/** 1.2.840.10045.4.3.2 */
const ecdsaWithSha256 = der(objectId, Buffer.from('2a8648ce3d040302', 'hex'));
/** 2.5.4.3 */
const commonName = der(objectId, Buffer.from('550403', 'hex'));
/** 2.5.29.17 */
const subjectAltName = der(objectId, Buffer.from('551d11', 'hex'));

/** RFC 5280 §4.2.1.6: a name of DNS is 2, an address 7. */
const localNames = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.of(127, 0, 0, 1)));

function tagged(number: number): number {
  return 0xa0 | number;
}

/** Some of them in their order. */
export function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

/** One value of DER (X.690 §8.1), of at most 65,535 bytes. */
export function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const long = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...(length < 0x80 ? [length] : long)), content]);
}

/** RFC 5280 §4.1.2.5.1: until 2049. */
function time(ms: number): Buffer {
  const [date = ''] = new Date(ms).toISOString().slice(2).split('.');
  return der(utcTime, Buffer.from(`${date.replace(/[-T:]/g, '')}Z`));
}

function pemOf(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
