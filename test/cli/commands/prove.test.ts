/** `sallyport prove`: what it prints, held to somebody else's reading of RFC 9449. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { calculateJwkThumbprint, decodeJwt, EmbeddedJWK, jwtVerify, type JWK } from 'jose';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const token = 'eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmVk';
const url = 'https://orders.example.com/orders/%7E1?page=2#top';

const pairs = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: generateKeyPairSync('ed25519'),
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
};

function keyFile(
  t: Scope,
  pem: string | Buffer = pairs.ES256.privateKey.export({ format: 'pem', type: 'pkcs8' }),
): string {
  const file = join(tempDir(t), 'key.pem');
  writeFileSync(file, pem, { mode: 0o600 });
  return file;
}

async function prove(args: readonly string[], stdin = `${token}\n`): Promise<CapturedIo> {
  const io = captureIo({ stdin });
  await run(['prove', ...args], io);
  return io;
}

for (const [algorithm, { privateKey, publicKey }] of Object.entries(pairs)) {
  t.test(`${algorithm}: the headers of one request, as RFC 9449 §4 has them`, async (t) => {
    const file = keyFile(t, privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const io = await prove(['--key', file, '--nonce', 'n-1', 'GET', url]);
    t.same([io.code(), io.err()], [0, '']);
    const [, authorization, dpop = ''] = /^Authorization: (.*)\nDPoP: (.*)\n$/.exec(io.out()) ?? [];
    t.equal(authorization, `DPoP ${token}`);
    const { payload, protectedHeader } = await jwtVerify(dpop, EmbeddedJWK, {
      typ: 'dpop+jwt',
      algorithms: [algorithm],
    });
    t.equal(
      await calculateJwkThumbprint(protectedHeader.jwk as JWK),
      await calculateJwkThumbprint(publicKey.export({ format: 'jwk' }) as JWK),
    );
    t.match(payload, {
      htm: 'GET',
      htu: 'https://orders.example.com/orders/%7E1',
      ath: createHash('sha256').update(token).digest('base64url'),
      nonce: 'n-1',
    });
    t.ok(Math.abs((payload.iat ?? 0) - Date.now() / 1_000) < 60);
  });
}

t.test('each proof is another one; --json says the same; the scheme of a token may stand before it', async (t) => {
  const file = keyFile(t);
  const ids = new Set<unknown>();
  for (const before of ['', 'Bearer ', 'DPoP ']) {
    const io = await prove(['--json', '--key', file, 'POST', url], before + token);
    const { authorization, dpop, ...rest } = JSON.parse(io.out()) as Record<string, string>;
    t.same([authorization, rest], [`DPoP ${token}`, {}]);
    const { jti, nonce } = decodeJwt(dpop ?? '');
    t.equal(nonce, undefined);
    ids.add(jti);
  }
  t.equal(ids.size, 3);
});

t.test('what cannot be used is said, and nothing of it', async (t) => {
  const file = keyFile(t);
  const open = keyFile(t);
  chmodSync(open, 0o644);
  const pem = { format: 'pem', type: 'pkcs8' } as const;
  const curve = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export(pem);
  const cases = [
    { name: 'no key', args: ['GET', url], says: /--key/ },
    { name: 'no address', args: ['--key', file, 'GET'], says: /url/ },
    { name: 'no method', args: ['--key', file, 'GE T', url], says: /Allowed: a method/ },
    { name: 'no web address', args: ['--key', file, 'GET', 'ftp://a/b'], says: /Allowed: an address/ },
    { name: 'a path alone', args: ['--key', file, 'GET', '/orders'], says: /Allowed: an address/ },
    { name: 'a user in it', args: ['--key', file, 'GET', 'https://u:p@a/b'], says: /without a user/ },
    { name: 'a nonce with a quote', args: ['--key', file, '--nonce', 'a"b', 'GET', url], says: /Allowed: a nonce/ },
    { name: 'no such file', args: ['--key', '/nowhere/key.pem', 'GET', url], says: /--key \/nowhere\/key\.pem: / },
    { name: 'a file for everybody', args: ['--key', open, 'GET', url], says: /every user of this machine may read/ },
    { name: 'no key in it', args: ['--key', keyFile(t, 'secret words'), 'GET', url], says: /no private key of P-256/ },
    { name: 'another curve', args: ['--key', keyFile(t, curve), 'GET', url], says: /no private key of P-256/ },
    {
      name: 'a public key',
      args: ['--key', keyFile(t, pairs.ES256.publicKey.export({ format: 'pem', type: 'spki' })), 'GET', url],
      says: /no private key of P-256/,
    },
    { name: 'no token', args: ['--key', file, 'GET', url], stdin: '\n', says: /standard input: empty/ },
    {
      name: 'two tokens',
      args: ['--key', file, 'GET', url],
      stdin: `${token}\n${token}`,
      says: /standard input: no token/,
    },
    { name: 'a header', args: ['--key', file, 'GET', url], stdin: 'a\r\nX-Evil: 1', says: /standard input: no token/ },
    { name: 'too long', args: ['--key', file, 'GET', url], stdin: 'x'.repeat(9_000), says: /at most 8 KiB/ },
    { name: 'far too long', args: ['--key', file, 'GET', url], stdin: 'x'.repeat(1_100_000), says: /larger than/ },
  ];
  for (const { name, args, says, stdin } of cases) {
    const io = await prove(args, stdin);
    t.same([io.code(), io.out()], [2, ''], name);
    t.match(io.err(), says, name);
    t.notMatch(io.err(), /secret words|PRIVATE|eyJ/, name);
  }
});
