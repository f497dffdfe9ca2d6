import t from 'tap';
import { encodeErrorDetails, reasonOf } from '../../../src/decision/grpc/error-details.js';
import { responseOf, reasons } from '../../../src/decision/denial.js';

/** Fields of a message, as far as this one has them: numbers and bytes. */
function fieldsOf(bytes: Buffer): readonly (readonly [number, number | Buffer])[] {
  const fields: (readonly [number, number | Buffer])[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const value = varint();
    if ((key & 7) === 0) fields.push([key >> 3, value]);
    else {
      fields.push([key >> 3, bytes.subarray(at, at + value)]);
      at += value;
    }
  }
  t.equal(at, bytes.length, 'nothing is cut');
  return fields;
}

const bytesOf = (value: number | Buffer | undefined): Buffer => (Buffer.isBuffer(value) ? value : Buffer.alloc(0));

t.test('the details are a google.rpc.Status with one google.rpc.ErrorInfo', (t) => {
  const message =
    'A message that is longer than one hundred and twenty-seven bytes, so that its length takes two: '.repeat(2);
  const record = 'p'.repeat(200);
  const encoded = encodeErrorDetails({ code: 10, message, type: 'idempotency-in-progress', record });
  t.match(encoded, /^[A-Za-z0-9+/]+$/, 'base64 without padding');
  const status = new Map(fieldsOf(Buffer.from(encoded, 'base64')));
  t.equal(status.get(1), 10);
  t.equal(String(status.get(2)), message);
  const any = new Map(fieldsOf(bytesOf(status.get(3))));
  t.equal(String(any.get(1)), 'type.googleapis.com/google.rpc.ErrorInfo');
  const info = new Map(fieldsOf(bytesOf(any.get(2))));
  t.equal(String(info.get(1)), 'IDEMPOTENCY_IN_PROGRESS');
  t.equal(String(info.get(2)), 'sallyport');
  const entry = new Map(fieldsOf(bytesOf(info.get(3))));
  t.equal(String(entry.get(1)), 'record');
  t.equal(String(entry.get(2)), record);
  t.end();
});

t.test('without a record there is no metadata', (t) => {
  const encoded = encodeErrorDetails({ code: 13, message: 'm', type: 'internal', record: undefined });
  const status = new Map(fieldsOf(Buffer.from(encoded, 'base64')));
  const any = new Map(fieldsOf(bytesOf(status.get(3))));
  t.same(
    fieldsOf(bytesOf(any.get(2))).map(([number, value]) => [number, String(value)]),
    [
      [1, 'INTERNAL'],
      [2, 'sallyport'],
    ],
  );
  t.end();
});

t.test('every type makes a reason of the form that error_details.proto asks for', (t) => {
  for (const reason of reasons) {
    const { type } = responseOf(reason);
    if (type !== null) t.match(reasonOf(type), /^[A-Z][A-Z0-9_]+[A-Z0-9]$/, reason);
  }
  t.end();
});
