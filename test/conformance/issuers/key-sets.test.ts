/** docs/issuers.md, "Keys and algorithms": which keys of a set count, and what each verifies. */
import t from 'tap';
import { startMetadataServer } from '../../support/metadata-server.js';
import { rsaKey } from '../../support/keys.js';
import { keyFor, signatureBy, type AnyKey } from '../../support/profile-tokens.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import { checkSilence } from '../silence.js';
import { changed, suiteOf, tokenOf, type Row, type Sound } from './issuer-suite.js';

const weak = rsaKey('weak', 1024);
const rsa = keyFor('RS256');
const pss = keyFor('PS256', 'pss');
/** Keys as they are listed: what is odd about each is its id. */
const sound: readonly AnyKey[] = [keyFor('RS256', 'rsa'), pss, keyFor('ES256', 'ec'), keyFor('EdDSA', 'ed')];
const counting: readonly (readonly [AnyKey, object])[] = [
  [keyFor('ES256', 'without-alg'), { alg: undefined }],
  [keyFor('ES256', 'without-use'), { use: undefined }],
  [keyFor('ES256', 'for-verifying'), { key_ops: ['verify'] }],
];
const odd: readonly (readonly [AnyKey, object])[] = [
  [keyFor('RS256', 'rsa-of-two-algorithms'), { alg: undefined }],
  [keyFor('ES256', 'alg-of-another-curve'), { alg: 'ES384' }],
  [keyFor('ES256', 'alg-of-rsa'), { alg: 'RS256' }],
  [keyFor('ES256', 'for-encryption'), { use: 'enc' }],
  [keyFor('ES256', 'for-certificates'), { use: 'x509-svid' }],
  [keyFor('ES256', 'for-signing'), { key_ops: ['sign'] }],
  [keyFor('ES256', 'private'), { d: 'AQAB' }],
  [keyFor('ES256', 'secret'), { k: 'AQAB' }],
  [keyFor('ES256', 'of another form'), {}],
  [keyFor('ES256', 'x'.repeat(257)), {}],
  [keyFor('ES384', 'not-allowed'), {}],
  [{ ...rsa, ...weak, keyId: 'weak', algorithm: 'RS256', jwk: { ...weak.jwk, kid: 'weak' } }, {}],
];

const idp = await startMetadataServer(t);
const listed = [...sound.map((key) => [key, {}] as const), ...counting, ...odd];
idp.at('/jwks', { keys: listed.map(([{ jwk }, members]) => ({ ...jwk, ...members })) });

const issuer = 'https://idp.example.com';
const proxy = await startProxyProcess(t, {
  config: {
    issuers: {
      idp: {
        profile: 'oauth',
        issuer,
        audience: 'orders',
        jwks_url: `${idp.origin}/jwks`,
        jwks_url_because: 'a test',
        algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
        jwks: { cooldown: '0ms' },
      },
    },
    routes: [{ name: 'all', methods: ['GET'], path: '/all', subjects: ['checkout'], permissions: [] }],
  },
});
const suite = suiteOf(proxy);
const nowS = Math.floor(Date.now() / 1000);
const claims = { iss: issuer, aud: 'orders', sub: 'checkout', client_id: 'c', jti: 'j', iat: nowS, exp: nowS + 300 };
const soundOf = (key: AnyKey): Sound => ({
  key,
  header: { alg: key.algorithm, kid: key.keyId, typ: 'at+jwt' },
  claims,
});
const rowOf = ([key]: readonly [AnyKey, object]): Row => ({
  name: key.keyId.slice(0, 40),
  token: changed(soundOf(key), {}),
});
const who = { subject: 'checkout', issuer, tokenId: 'j' };

t.test('keys that say what they verify, or that fit one algorithm alone, count; all others do not', async (t) => {
  await suite.passes(t, [...sound.map((key) => [key, {}] as const), ...counting].map(rowOf), who);
  await suite.refuses(t, odd.map(rowOf));
  t.equal(suite.answers.size, 1);
});

t.test('a signature has one spelling: as many bytes as its key says, leading zeros too', async (t) => {
  const whole = ((): string => {
    for (let number = 0; ; number++) {
      const token = tokenOf(pss, JSON.stringify(soundOf(pss).header), JSON.stringify({ ...claims, number }));
      if (Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url')[0] === 0) return token;
    }
  })();
  await suite.passes(t, [{ name: 'whole', token: whole }], who);
  const [input, signature] = [whole.slice(0, whole.lastIndexOf('.')), whole.slice(whole.lastIndexOf('.') + 1)];
  const bytes = Buffer.from(signature, 'base64url');
  await suite.refuses(t, [
    { name: 'a byte less', token: `${input}.${bytes.subarray(1).toString('base64url')}` },
    { name: 'a byte more', token: `${input}.${Buffer.concat([Buffer.alloc(1), bytes]).toString('base64url')}` },
    { name: 'RS256', token: `${input}.${signatureBy('RS256', pss.privateKey, input).toString('base64url')}` },
  ]);
});

checkSilence(t, proxy);
