import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { readKeySet } from '../../../src/adapters/jwks/key-set.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { coreKeyRules } from '../../../src/decision/token/profiles.js';

const one = rsaKey('d-1');
const two = rsaKey('d-2');
const ec = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }), kid: 'd-1' };

function read(value: unknown): ReturnType<typeof readKeySet> {
  return readKeySet(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), coreKeyRules);
}

t.test('reads the RSA keys of a set', async (t) => {
  const set = await read({ keys: [one.jwk, two.jwk], comment: 'ignored' });
  if (!set.ok) return void t.fail(set.error);
  t.same([...set.value.keys.keys()], ['d-1', 'd-2']);
  t.same(set.value.skipped, []);
  t.ok(set.value.keys.get('d-1')?.key.equals(one.publicKey));
  t.equal(set.value.keys.get('d-2')?.key.type, 'public');
});

t.test('a padded number is read like any other', async (t) => {
  const padded = { ...one.jwk, n: `${String(one.jwk.n)}==`, e: 'AAEAAQ==' };
  const set = await read({ keys: [padded] });
  t.ok(
    set.ok && set.value.keys.get('d-1')?.key.equals(createPublicKey({ key: one.jwk, format: 'jwk' })),
    JSON.stringify(set),
  );
});

t.test('keys for other purposes and weak ones are passed over, with the reason', async (t) => {
  const rows: { name: string; jwk: object; reason: RegExp }[] = [
    { name: 'another type', jwk: ec, reason: /kty/ },
    { name: 'no kid', jwk: { ...two.jwk, kid: undefined }, reason: /kid/ },
    { name: 'for encryption', jwk: { ...two.jwk, use: 'enc' }, reason: /use/ },
    { name: 'for another algorithm', jwk: { ...two.jwk, alg: 'PS256' }, reason: /alg/ },
    { name: '1024 bits', jwk: rsaKey('d-3', 1024).jwk, reason: /1024/ },
    { name: 'an exponent of 1', jwk: { ...two.jwk, e: 'AQ' }, reason: /exponent/ },
    { name: 'no modulus', jwk: { ...two.jwk, n: undefined }, reason: /n is not/ },
    { name: 'a private key', jwk: { ...two.jwk, ...two.privateKey.export({ format: 'jwk' }) }, reason: /private/ },
    { name: 'nothing', jwk: {}, reason: /kty/ },
  ];
  for (const { name, jwk, reason } of rows) {
    const set = await read({ keys: [jwk, one.jwk] });
    if (!set.ok) return void t.fail(`${name}: ${set.error}`);
    t.same([...set.value.keys.keys()], ['d-1'], name);
    t.equal(set.value.skipped.length, 1, name);
    t.match(set.value.skipped[0], reason, name);
    t.match(set.value.skipped[0], /^keys\[0\]/, name);
    t.notMatch(set.value.skipped[0], String(one.jwk.n), name);
  }
});

t.test('one kid for two different keys is refused, for the same key not', async (t) => {
  t.match(await read({ keys: [one.jwk, withKeyId(two, 'd-1').jwk] }), {
    ok: false,
    error: 'two different keys have the kid d-1',
  });
  const same = await read({ keys: [one.jwk, { ...one.jwk, x5t: 'x' }] });
  t.ok(same.ok && same.value.keys.size === 1);
  const otherType = await read({ keys: [ec, one.jwk] });
  t.ok(otherType.ok && otherType.value.keys.size === 1, 'RFC 7517 §4.5: another type may share it');
});

t.test('a broken set is refused', async (t) => {
  const listed = JSON.stringify(one.jwk);
  const rows: { name: string; input: unknown; error: RegExp }[] = [
    { name: 'nothing', input: '', error: /not JSON/ },
    { name: 'HTML', input: '<html>', error: /not JSON/ },
    { name: 'cut off', input: `{"keys":[${listed}`, error: /not JSON/ },
    { name: 'an array', input: [one.jwk], error: /not a JSON object/ },
    { name: 'null', input: 'null', error: /not a JSON object/ },
    { name: 'a single key', input: one.jwk, error: /no array "keys"/ },
    { name: 'keys by name', input: { keys: { 'd-1': one.jwk } }, error: /no array "keys"/ },
    { name: 'keys inherited', input: '{"__proto__":{"keys":[]}}', error: /no array "keys"/ },
    { name: 'a key that is no object', input: { keys: [one.jwk, 'd-1'] }, error: /keys\[1\] is not an object/ },
    { name: 'a key that is null', input: { keys: [null] }, error: /keys\[0\] is not an object/ },
    { name: 'keys named twice', input: `{"keys":[],"keys":[${listed}]}`, error: /twice/ },
    { name: 'kid named twice', input: `{"keys":[${listed.replace('{', '{"kid":"d-9",')}]}`, error: /twice/ },
    { name: 'a byte order mark', input: `\ufeff{"keys":[${listed}]}`, error: /not JSON/ },
    { name: 'nested deep', input: `{"keys":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, error: /deep/ },
  ];
  for (const { name, input, error } of rows) t.match(await read(input), { ok: false, error }, name);
  t.match(await readKeySet(Buffer.from([0x7b, 0xff, 0x7d]), coreKeyRules), { ok: false, error: /UTF-8/ });
});

t.test('an empty set is read as one', async (t) => {
  t.match(await read({ keys: [] }), { ok: true, value: { skipped: [] } });
});
