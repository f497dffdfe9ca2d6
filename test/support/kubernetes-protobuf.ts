/**
 * Namespaces and secrets as `kubectl create` and Helm send them: protobuf, in an envelope of Kubernetes
 * (`k8s.io/apimachinery`, runtime.Unknown).
 */
import type { Manifest } from './helm.js';

type Field = { readonly number: number; readonly bytes: Buffer };

const magic = Buffer.from('k8s\0', 'latin1');

/** Metadata (1), and a secret's data (2) and type (3). */
export function readProtobuf(envelope: Buffer): Manifest {
  if (!envelope.subarray(0, 4).equals(magic)) throw new Error('no protobuf of Kubernetes');
  const [typeMeta, raw] = [1, 2].map((number) => bytesOf(fieldsOf(envelope.subarray(4)), number));
  const [apiVersion, kind] = [1, 2].map((number) => textOf(fieldsOf(typeMeta ?? magic), number));
  const object = fieldsOf(raw ?? magic);
  const metadata = fieldsOf(bytesOf(object, 1));
  const data = mapOf(object, 2, 'base64');
  return {
    apiVersion: apiVersion ?? '',
    kind: kind ?? '',
    metadata: { name: textOf(metadata, 1), labels: mapOf(metadata, 11, 'utf8') },
    ...(kind === 'Secret' ? { data, type: textOf(object, 3) } : {}),
  };
}

/** Fields that are bytes; numbers are passed over. */
function fieldsOf(message: Buffer): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): number => {
    for (let value = 0, scale = 1; ; scale *= 128) {
      const byte = message[at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const length = varint();
    if ((tag & 7) !== 2) continue;
    fields.push({ number: tag >> 3, bytes: message.subarray(at, (at += length)) });
  }
  return fields;
}

function bytesOf(fields: readonly Field[], number: number): Buffer {
  return fields.find((field) => field.number === number)?.bytes ?? Buffer.alloc(0);
}

function textOf(fields: readonly Field[], number: number): string {
  return bytesOf(fields, number).toString('utf8');
}

function mapOf(fields: readonly Field[], number: number, encoding: BufferEncoding): Readonly<Record<string, string>> {
  return Object.fromEntries(
    fields
      .filter((field) => field.number === number)
      .map(({ bytes }) => {
        const entry = fieldsOf(bytes);
        return [textOf(entry, 1), bytesOf(entry, 2).toString(encoding)];
      }),
  );
}
