/** What stands in a page for modules of Node.js says what they say. */
import * as nodeCrypto from 'node:crypto';
import * as nodeHttp from 'node:http';
import * as nodeNet from 'node:net';
import * as nodePath from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { ecdsaSequence } from '../../../src/decision/token/ecdsa-sequence.js';
import { Buffer as PageBuffer } from '../../../src/playground/node/buffer.js';
import * as pageCrypto from '../../../src/playground/node/crypto.js';
import * as pageHttp from '../../../src/playground/node/http.js';
import * as pageNet from '../../../src/playground/node/net.js';
import * as pagePath from '../../../src/playground/node/path.js';

const addresses = [
  '',
  '1.2.3.4',
  '01.2.3.4',
  '1.2.3',
  '256.1.1.1',
  '::1',
  '::',
  '1::',
  '::ffff:1.2.3.4',
  '::ffff:01.2.3.4',
  '::1.2.3',
  '1:2:3:4:5:6:7:8:9',
  '1::2::3',
  '12345::',
  'fe80::1%eth0',
  'fe80::1%',
  '2001:DB8::A',
  '::2:3:4:5:6:7:8',
  '64:ff9b::192.0.2.1',
];

const addressLike = fc
  .array(fc.constantFrom('0', '1', '9', '10', '255', '256', 'a', 'ffff', ':', '::', '.', '%', '00'), { maxLength: 14 })
  .map((parts) => parts.join(''));

const ipv6 = fc.ipV6().map((text) => text.toLowerCase());

t.test('node:net', (t) => {
  const isSame = (text: string): boolean =>
    pageNet.isIP(text) === nodeNet.isIP(text) && pageNet.isIPv4(text) === nodeNet.isIPv4(text);
  for (const text of addresses) t.ok(isSame(text), text);
  fc.assert(fc.property(fc.oneof(addressLike, ipv6, fc.ipV4()), isSame), { numRuns: 20_000 });
  const someBlock = fc.oneof(
    fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })),
    fc.tuple(
      fc.oneof(
        ipv6,
        fc.ipV4().map((text) => `::ffff:${text}`),
      ),
      fc.integer({ min: 0, max: 128 }),
    ),
  );
  const familyOf = (text: string): 'ipv4' | 'ipv6' => (text.includes(':') ? 'ipv6' : 'ipv4');
  fc.assert(
    fc.property(fc.array(someBlock, { maxLength: 3 }), fc.oneof(fc.ipV4(), ipv6), fc.nat(2), (blocks, other, which) => {
      const [page, node] = [new pageNet.BlockList(), new nodeNet.BlockList()];
      for (const [address, bits] of blocks) {
        page.addSubnet(address, bits, familyOf(address));
        node.addSubnet(address, bits, familyOf(address));
      }
      const asked = blocks[which]?.[0] ?? other;
      return [asked, other].every((one) => page.check(one, familyOf(one)) === node.check(one, familyOf(one)));
    }),
    { numRuns: 5_000 },
  );
  t.end();
});

t.test('node:path', (t) => {
  const step = fc.constantFrom('a', 'b.c', '.', '..', '', 'ä');
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), fc.array(step, { maxLength: 6 }), (folder, path) => {
      const given = [`/${folder.join('/')}`, path.join('/')] as const;
      return pagePath.resolve(...given) === nodePath.resolve(...given);
    }),
  );
  t.end();
});

t.test('node:http', (t) => {
  t.same(pageHttp.METHODS, nodeHttp.METHODS);
  t.end();
});

t.test('Buffer', (t) => {
  const encodings = ['utf8', 'latin1', 'hex', 'base64', 'base64url'] as const;
  for (const bytes of [
    [0xe0, 0xa0],
    [0xef, 0xbb, 0xbf, 0x61],
    [0xf0, 0x9f, 0x61],
    [0xed, 0xa0, 0x80],
  ]) {
    t.equal(PageBuffer.from(bytes).toString(), Buffer.from(bytes).toString(), bytes.join(' '));
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(...encodings), (bytes, encoding) => {
      const text = Buffer.from(bytes).toString(encoding);
      t.equal(PageBuffer.from(bytes).toString(encoding), text);
      t.same([...PageBuffer.from(text, encoding)], [...Buffer.from(text, encoding)]);
    }),
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      t.same([...PageBuffer.from(text)], [...Buffer.from(text)]);
      t.equal(PageBuffer.byteLength(text), Buffer.byteLength(text));
    }),
  );
  const byte = fc.oneof(
    fc.constantFrom('A', 'z', '9', '+', '/', '-', '_', '=', ' '),
    fc.nat(255).map((code) => String.fromCharCode(code)),
  );
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 20 }), (bytes) => {
      const text = bytes.join('');
      for (const encoding of encodings.filter((one) => one !== 'hex')) {
        t.same([...PageBuffer.from(text, encoding)], [...Buffer.from(text, encoding)], encoding);
      }
    }),
    { numRuns: 500 },
  );
  t.end();
});

t.test('digests of node:crypto', (t) => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.string({ unit: 'binary' }), (bytes, text) => {
      for (const algorithm of ['sha1', 'sha256']) {
        t.equal(
          pageCrypto.createHash(algorithm).update(bytes).update(text).digest('base64url'),
          nodeCrypto.createHash(algorithm).update(bytes).update(text).digest('base64url'),
        );
      }
      t.equal(pageCrypto.hash('sha256', text, 'base64'), nodeCrypto.createHash('sha256').update(text).digest('base64'));
    }),
  );
  t.throws(() => pageCrypto.createHash('md5').update('').digest());
  t.end();
});

t.test('keys sign for who made them, and for nobody else', (t) => {
  const data = Buffer.from('signed');
  const kinds = [
    ['rsa', { modulusLength: 2048 }, 256],
    ['ec', { namedCurve: 'P-256' }, 64],
    ['ec', { namedCurve: 'P-384' }, 96],
    ['ec', { namedCurve: 'P-521' }, 132],
    ['ed25519', {}, 64],
  ] as const;
  for (const [type, options, bytes] of kinds) {
    const { publicKey, privateKey } = pageCrypto.generateKeyPairSync(type, options);
    const signature = pageCrypto.sign(null, data, { key: privateKey });
    t.equal(signature.length, bytes);
    t.ok(pageCrypto.verify(null, data, { key: publicKey }, signature));
    const alone = type === 'ec' ? ecdsaSequence(signature) : signature;
    t.ok(pageCrypto.verify(null, data, publicKey, alone));
    t.notOk(pageCrypto.verify(null, Buffer.from('other'), publicKey, alone));
    t.notOk(pageCrypto.verify(null, data, publicKey, Buffer.alloc(0)));
    t.notOk(pageCrypto.verify(null, Buffer.from('other'), { key: publicKey }, signature));
    t.notOk(pageCrypto.verify(null, data, { key: publicKey }, signature.subarray(1)));
    const other = pageCrypto.generateKeyPairSync(type, options);
    t.notOk(pageCrypto.verify(null, data, { key: other.publicKey }, signature));
    t.ok(publicKey.equals(publicKey));
    t.notOk(publicKey.equals(other.publicKey));
  }
  const { privateKey, publicKey } = nodeCrypto.generateKeyPairSync('ed25519');
  const foreign = pageCrypto.createPublicKey({ key: publicKey.export({ format: 'jwk' }) as Record<string, string> });
  const signature = nodeCrypto.sign(null, data, privateKey);
  t.notOk(pageCrypto.verify(null, data, { key: foreign }, signature), 'what others signed is wrong here');
  t.throws(() => pageCrypto.sign(null, data, { key: foreign }));
  t.throws(() => new pageCrypto.X509Certificate());
  t.end();
});
