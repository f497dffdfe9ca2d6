/** Certificates with names of any kind; nobody signed them, which reading them does not notice. */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { der, sequence } from '../../src/cli/commands/dev/certificate.js';

/** A part of a subject: RFC 4514 §3 for its type. */
export interface NamePart {
  readonly type: 'CN' | 'O' | 'OU';
  readonly value: string;
}

/** Another name of the subject (RFC 5280 §4.2.1.6). */
export interface OtherName {
  readonly kind: 'URI' | 'DNS' | 'email';
  /** Latin-1: it need not be what such a name may hold. */
  readonly value: string;
}

const types = { CN: '550403', O: '55040a', OU: '55040b' };
const tags = { email: 0x81, DNS: 0x82, URI: 0x86 };
const ecdsaWithSha256 = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
const subjectAltName = der(0x06, Buffer.from('551d11', 'hex'));
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'der', type: 'spki' });

/** @param subject sets of parts, least specific first. */
export function certificateOf(
  subject: readonly (readonly NamePart[])[],
  otherNames: readonly OtherName[],
): X509Certificate {
  const owner = sequence(
    ...subject.map((set) =>
      der(
        0x31,
        Buffer.concat(
          set.map(({ type, value }) =>
            sequence(der(0x06, Buffer.from(types[type], 'hex')), der(0x0c, Buffer.from(value))),
          ),
        ),
      ),
    ),
  );
  const alternatives = sequence(...otherNames.map(({ kind, value }) => der(tags[kind], Buffer.from(value, 'latin1'))));
  const extensions = der(0xa3, sequence(sequence(subjectAltName, der(0x04, alternatives))));
  const time = (text: string): Buffer => der(0x17, Buffer.from(text));
  const toSign = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1)),
    ecdsaWithSha256,
    owner,
    sequence(time('260101000000Z'), time('300101000000Z')),
    owner,
    key,
    ...(otherNames.length === 0 ? [] : [extensions]),
  );
  return new X509Certificate(sequence(toSign, ecdsaWithSha256, der(0x03, Buffer.of(0, 0x30, 0))));
}
