import t from 'tap';
import {
  nameInHeaders,
  nameInJson,
  planKey,
  type MissingKeyPolicy,
  type IdempotencyKeySource,
} from '../../../src/decision/egress/key.js';

const header: IdempotencyKeySource = { kind: 'header', name: 'x-order' };

const plans: readonly {
  readonly name: string;
  readonly method?: string;
  readonly own?: string;
  readonly mode?: MissingKeyPolicy;
  readonly from?: IdempotencyKeySource;
  readonly expected: unknown;
}[] = [
  { name: 'passed without one', expected: { kind: 'kept', hasKey: false } },
  { name: 'passed with one', own: 'a-1', expected: { kind: 'kept', hasKey: true } },
  { name: 'a quoted one', own: '"a 1"', expected: { kind: 'kept', hasKey: true } },
  { name: 'generated', mode: 'generate', expected: { kind: 'generate' } },
  { name: "not beside the caller's own", mode: 'generate', own: 'a-1', expected: { kind: 'kept', hasKey: true } },
  { name: 'a read needs none', method: 'GET', mode: 'require', expected: { kind: 'kept', hasKey: false } },
  { name: 'nor HEAD', method: 'HEAD', mode: 'generate', from: header, expected: { kind: 'kept', hasKey: false } },
  { name: 'PUT and DELETE write', method: 'DELETE', mode: 'generate', expected: { kind: 'generate' } },
  { name: 'required', mode: 'require', expected: 'idempotency_key_missing' },
  { name: 'named', from: header, expected: { kind: 'derive' } },
  { name: 'named in the place of a required one', mode: 'require', from: header, expected: { kind: 'derive' } },
  { name: 'own before named', own: 'a', mode: 'generate', from: header, expected: { kind: 'kept', hasKey: true } },
  { name: 'malformed', own: 'a b', expected: 'idempotency_key_malformed' },
  { name: 'empty', own: '', mode: 'generate', expected: 'idempotency_key_malformed' },
];

t.test('a write gets the key that the target says, and never another than its own', (t) => {
  for (const { name, method = 'POST', own = null, mode = 'pass', from = null, expected } of plans) {
    const plan = planKey({ method, idempotencyKey: own }, mode, from);
    t.same(plan.ok ? plan.value : plan.error.reason, expected, name);
  }
  t.end();
});

t.test('the operation is named by one header', (t) => {
  t.equal(nameInHeaders(['X-Order', '7', 'X-Other', '8'], 'x-order'), '7');
  t.equal(nameInHeaders(['X-Other', '8'], 'x-order'), null);
  t.equal(nameInHeaders(['X-Order', '7', 'x-order', '7'], 'x-order'), null, 'two are none');
  t.equal(nameInHeaders(['X-Order', ''], 'x-order'), null);
  t.equal(nameInHeaders(['X-Order', 'x'.repeat(1_025)], 'x-order'), null);
  t.end();
});

const documents: readonly {
  readonly body: string;
  readonly path: readonly string[];
  readonly expected: string | null;
}[] = [
  { body: '{"order":{"id":"o-1"}}', path: ['order', 'id'], expected: 'o-1' },
  { body: '{"id":17}', path: ['id'], expected: '17' },
  { body: '{"id":9007199254740991}', path: ['id'], expected: '9007199254740991' },
  { body: '{"id":9007199254740993}', path: ['id'], expected: null },
  { body: '{"id":1e999}', path: ['id'], expected: null },
  { body: '{"id":0.30000000000000001}', path: ['id'], expected: null },
  { body: '["a","b"]', path: ['1'], expected: 'b' },
  { body: '{"id":""}', path: ['id'], expected: null },
  { body: '{"id":null}', path: ['id'], expected: null },
  { body: '{"id":{"a":1}}', path: ['id'], expected: null },
  { body: '{"id":true}', path: ['id'], expected: null },
  { body: '{"a":1}', path: ['id'], expected: null },
  { body: '{}', path: ['__proto__'], expected: null },
  { body: '"text"', path: ['length'], expected: null },
  { body: 'null', path: ['id'], expected: null },
  { body: '{"id":"a","id":"b"}', path: ['id'], expected: null },
  { body: '{"order":{"id":"a"},"or\\u0064er":{"id":"b"}}', path: ['order', 'id'], expected: null },
  { body: '{"id":"a","other":{"id":"b"}}', path: ['id'], expected: 'a' },
  { body: `{"id":"a","deep":${'['.repeat(63)}1${']'.repeat(63)}}`, path: ['id'], expected: 'a' },
  { body: `{"id":"a","deep":${'['.repeat(64)}1${']'.repeat(64)}}`, path: ['id'], expected: null },
  { body: '{"id":', path: ['id'], expected: null },
  { body: '', path: ['id'], expected: null },
];

t.test('or by a text or number of a JSON body', (t) => {
  for (const { body, path, expected } of documents) {
    t.equal(nameInJson(Buffer.from(body), path), expected, body);
  }
  t.equal(nameInJson(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), ['id']), null, 'not UTF-8');
  t.end();
});
