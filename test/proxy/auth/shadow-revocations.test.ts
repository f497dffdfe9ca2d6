/** What is revoked is not let through by shadow mode, whatever form of it only the upstream can read. */
import t, { type Test } from 'tap';
import { tokenDigest } from '../../../src/decision/revocation/match.js';
import type { Revocations } from '../../../src/decision/route/policy.js';
import type { KeyLookup } from '../../../src/ports/auth.js';
import { revocations } from '../../decision/samples.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { request } from '../../support/raw-client.js';
import { base64url, mintToken, serviceClaims, signToken, type Claims } from '../../support/tokens.js';
import { mintSession } from '../../support/sessions.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startProxy, type Harness, type HarnessOptions } from '../harness.js';
import { sessionConfig, sessionsOf, userRoute } from '../websocket/stand-in-sessions.js';

const routes = [{ name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] }];

interface Shadow extends Harness {
  readonly revoke: (...rules: readonly Partial<Revocations>[]) => void;
  /** Status and reason of a request with this `Authorization`. */
  readonly ask: (authorization: string, headers?: Readonly<Record<string, string>>, path?: string) => Promise<string>;
}

async function startShadow(t: Test, { config = {}, ...options }: HarnessOptions = {}): Promise<Shadow> {
  let listed: readonly Revocations[] = [];
  const usual: ConfigTree = { mode: 'shadow', routes, listen: { max_header_bytes: '32KiB' } };
  const proxy = await startProxy(t, { ...options, config: { ...usual, ...config }, listed: () => listed });
  return {
    ...proxy,
    revoke: (...rules) => {
      listed = rules.map(revocations);
    },
    ask: async (authorization, headers = {}, path = '/orders') => {
      const all = authorization === '' ? headers : { ...headers, Authorization: authorization };
      const { status } = await request(proxy.port, { path, headers: all });
      return `${String(status)} ${String(proxy.records.at(-1)?.reason)}`;
    },
  };
}

/** An issuer beside the Core whose keys have such ids. */
const otherIssuer = (keyIds: string): ConfigTree => ({
  issuers: {
    other: {
      profile: 'oauth',
      issuer: 'https://other.example',
      jwks_url: 'http://127.0.0.1:1/jwks',
      audience: 'orders',
      key_ids: { accept: [keyIds] },
    },
  },
});

const groups = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `group-${String(at)}`);

t.test('a token that is too long to be accepted', async (t) => {
  const shadow = await startShadow(t);
  const mint = (claims: Claims): string => mintToken({ key: shadow.key, claims: { groups: groups(700), ...claims } });
  const [eve, bob] = [mint({ sub: 'eve', jti: '1' }), mint({ sub: 'bob', jti: '2' })];
  t.equal(eve.length > 8_192, true);
  t.equal(await shadow.ask(`Bearer ${eve}`), '200 credential_malformed');
  for (const [rules, reason] of [
    [{ subjects: new Set(['eve']) }, 'subject_revoked'],
    [{ tokenIds: new Set(['1']) }, 'token_revoked'],
  ] as const) {
    shadow.revoke(rules);
    t.equal(await shadow.ask(`Bearer ${eve}`), `401 ${reason}`);
    t.equal(await shadow.ask(`Bearer ${bob}`), '200 credential_malformed');
  }
  shadow.revoke({ keyIds: new Set([shadow.key.keyId]) });
  t.equal(await shadow.ask(`Bearer ${bob}`), '401 key_revoked');
  const wide = mintToken({ key: shadow.key, header: { x5c: groups(700) } });
  t.equal(await shadow.ask(`Bearer ${wide}`), '401 key_revoked', 'a header as long');
  shadow.revoke({ keyIds: new Set(['d-other']) });
  t.equal(await shadow.ask(`Bearer ${bob}`), '200 credential_malformed');
});

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Base64url of the same bytes for whoever does not look at the bits that are left over. */
const loose = (encoded: string): string =>
  `${encoded.slice(0, -1)}${alphabet[alphabet.indexOf(encoded.slice(-1)) + 1] ?? ''}`;

t.test('a revoked key whose holder writes headers that only the upstream can read', async (t) => {
  const shadow = await startShadow(t);
  const payload = base64url(JSON.stringify(serviceClaims()));
  const of = (header: string | Buffer): string => `${base64url(header)}.${payload}.c2ln`;
  const plain = '{"alg":"RS256","kid":"d-lost","typ":"JWT"}';
  const encoded = base64url(plain);
  const rows: readonly (readonly [string, string])[] = [
    ['given twice', `Bearer ${of('{"alg":"RS256","kid":"d-ok","kid":"d-lost"}')}`],
    ['given twice, the first one', `Bearer ${of('{"alg":"RS256","kid":"d-lost","kid":"d-ok"}')}`],
    ['a bit that is left over', `Bearer ${loose(base64url(`${plain} `))}.${payload}.c2ln`],
    ['padded', `Bearer ${base64url(`${plain} `)}==.${payload}.c2ln`],
    [
      'the other alphabet',
      `Bearer ${of('{"kid":"d-lost","x":"ÿÿÿÿ~~~???>>>"}').replace(/-/g, '+').replace(/_/g, '/')}`,
    ],
    ['nested deeply', `Bearer ${of(`{"kid":"d-lost","x":${'['.repeat(20)}${']'.repeat(20)}}`)}`],
    ['a byte order mark', `Bearer ${of(`\ufeff${plain}`)}`],
    ['no UTF-8', `Bearer ${of(Buffer.from('{"kid":"d-lost","x":"\xff"}', 'latin1'))}`],
    ['UTF-16', `Bearer ${of(Buffer.from(plain, 'utf16le'))}`],
    ['UTF-16, the other way round', `Bearer ${of(Buffer.from(plain, 'utf16le').swap16())}`],
    ['escaped', `Bearer ${of('{"kid":"d-ok","k\\u0069d":"\\u0064\\u002Dlost"}')}`],
    ['no JSON, for strict readers', `Bearer ${of("{'alg':'RS256',kid:'d-lost'}")}`],
    ['without quotes', `Bearer ${of('{alg:RS256,kid=d-lost}')}`],
    ['a comma at the end', `Bearer ${of('{"kid":"d-lost",}')}`],
    [
      'with characters in between that lax readers pass over',
      `Bearer ${encoded.slice(0, 3)}!${encoded.slice(3)}.${payload}.c2ln`,
    ],
    ['with blanks in between', `Bearer  ${encoded.slice(0, 10)} ${encoded.slice(10)}.${payload}.c2ln`],
    ['a dot in the payload', `Bearer ${encoded}.${payload}.${payload}.c2ln`],
    ['a dot at the end', `Bearer ${encoded}.${payload}.c2ln.`],
    ['a dot at the end of a token as short as can be', `Bearer ${encoded}..x.`],
    ['a name in another case', `Bearer ${of('{"alg":"RS256","Kid":"d-lost"}')}`],
    ['behind other words', `Token v1.2 ${encoded}.${payload}.c2ln`],
    ['behind another token', `Bearer ${of('{"kid":"d-ok"}')}, ${of('{"kid":"d-lost"}')}`],
  ];
  for (const [name, authorization] of rows) {
    shadow.revoke();
    t.match(await shadow.ask(authorization), /^200 /, `${name}: shadow mode lets it pass`);
    shadow.revoke({ keyIds: new Set(['d-other']) }, { keyIds: new Set(['d-lost']) });
    t.equal(await shadow.ask(authorization), '401 key_revoked', name);
    shadow.revoke({ keyIds: new Set(['d-los', 'lost', 'd-lost2', 'D-LOST']) });
    t.match(await shadow.ask(authorization), /^200 /, `${name}: not that of another key`);
  }
});

t.test('while keys are revoked, what merely looks like a token goes on', async (t) => {
  const shadow = await startShadow(t);
  shadow.revoke({ keyIds: new Set(['d-lost']), subjects: new Set(['eve']) });
  const foreign = rsaKey('s-foreign');
  for (const authorization of [
    'Version 1.2.3',
    'Bearer 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',
    'Bearer example.com.d-lost',
    'Basic d-lost',
    'Digest username="d-lost", realm="a.b.c", uri="/v1.2.3/x", response="6629fae4"',
    `Bearer ${mintToken({ key: foreign })}`,
    `Bearer ${mintToken({ key: foreign, header: { x: 'd-lost' } })}`,
    `Bearer ${signToken('{"kid":"s-1","kid":"s-2"}', '{"sub":"eve"}', foreign.privateKey)}`,
    `Bearer ${signToken('{"kid":"d-1","kid":"d-2"}', '{"sub":"eve","sub":"eve"}', foreign.privateKey)}`,
    `Bearer ${base64url('{"enc":"A256GCM","kid":"d-lost-not"}')}.a.b.c.d`,
  ]) {
    t.match(await shadow.ask(authorization), /^200 /, authorization);
  }
});

t.test('claims that only the upstream can read, of a token whose signature holds', async (t) => {
  const shadow = await startShadow(t);
  const { privateKey, keyId } = shadow.key;
  const header = JSON.stringify({ alg: 'RS256', kid: keyId, typ: 'JWT' });
  const twice = '{"sub":"bob","sub":"eve"}';
  const token = signToken(header, twice, privateKey);
  const stranger = signToken(header, twice, withKeyId(rsaKey('d-evil'), keyId).privateKey);
  for (const scheme of ['Bearer ', 'Bearer  ']) {
    shadow.revoke();
    t.match(await shadow.ask(scheme + token), /^200 /);
    shadow.revoke({ keyIds: new Set(['d-other']) });
    t.match(await shadow.ask(scheme + token), /^200 /, 'no claim is revoked');
    shadow.revoke({ subjects: new Set(['eve']) });
    t.equal(await shadow.ask(scheme + token), '401 token_malformed');
    t.match(await shadow.ask(scheme + stranger), /^200 /, 'what others sign is not ours');
  }
  const ended = `Bearer ${mintToken({ key: shadow.key, claims: { sub: 'eve', jti: '1' } })}.`;
  t.equal(await shadow.ask(ended), '401 subject_revoked', 'split by Java, it has three parts');
  shadow.revoke({ tokenDigests: new Set([tokenDigest(ended.slice('Bearer '.length, -1))]) });
  t.equal(await shadow.ask(ended), '401 token_revoked');
  shadow.revoke({ subjects: new Set(['eve']) });
  const eve = JSON.stringify(serviceClaims({ claims: { sub: 'eve' } }));
  for (const [name, odd] of [
    ['a header with a name twice', `{"alg":"RS256","kid":"d-0","kid":"${keyId}"}`],
    ['a header with a blank more', ` ${header}`],
  ] as const) {
    t.equal(await shadow.ask(`Bearer ${signToken(odd, eve, privateKey)}`), '401 subject_revoked', name);
  }
});

t.test('a session in a cookie that not all readers read alike', async (t) => {
  const key = rsaKey();
  const shadow = await startShadow(t, {
    config: { ...sessionConfig, routes: [...routes, userRoute] },
    sessions: sessionsOf(key),
  });
  const session = mintSession({ key });
  const [header = '', payload = '', signature = ''] = session.split('.');
  const cut = (odd: string): string => `${session.slice(0, -9)}${odd}${session.slice(-9)}`;
  for (const [name, cookie] of [
    ['in percent', `sAccessToken=%65${session.slice(1).replaceAll('.', '%2E')}`],
    ['octal escapes', `sAccessToken="${header}\\056${payload}\\056${signature}"`],
    ['both escapes', `sAccessToken="${header}%5C056${payload}\\056${signature}"`],
    ['a semicolon in quotes', `sAccessToken="${cut(';')}"; a=b`],
    ['a semicolon in quotes, behind a blank', `a=b sAccessToken="${cut(';')}"`],
    ['another cookie behind it', `sAccessToken="${cut('\\041')}" a=b`],
    ['behind a comma', `a=1, sAccessToken=${cut('%21')}`],
    ['in quotes of another cookie', `x="; sAccessToken="${cut(';')}"`],
    ['a no-break space before the name', `\xa0sAccessToken=${session}`],
    ['the name in escapes', `%73AccessToken=${session}`],
    ['the name in another case', `SACCESSTOKEN=${session}`],
    ['a blank in its signature', `sAccessToken=${cut(' ')}`],
    ['padded', `sAccessToken=${session}==`],
  ] as const) {
    shadow.revoke();
    t.match(await shadow.ask('', { Cookie: cookie }), /^200 /, `${name}: shadow mode lets it pass`);
    shadow.revoke({ subjects: new Set(['user-1']) });
    t.equal(await shadow.ask('', { Cookie: cookie }), '401 credential_ambiguous', name);
  }
  shadow.revoke({ subjects: new Set(['mallory']) });
  for (const [name, cookie] of [
    ['its own', `sAccessToken=${session}`],
    ['two of them', `sAccessToken=${session}; a=b; sAccessToken=${session}`],
    ['others with quotes', `size=5" pipe; sAccessToken=${session}; _ga=GA1.2.3.4; pref=\\"dark\\"; name=O"Neil`],
    ['one that was cleared', 'sAccessToken=""; a=b; b={"c":1}'],
  ] as const) {
    t.match(await shadow.ask('', { Cookie: cookie }), /^200 /, name);
  }
});

t.test('a revoked session beside the token of a caller that lacks a right', async (t) => {
  const key = rsaKey('d-session');
  const own = [{ ...routes[0], subjects: ['somebody-else'] }, userRoute];
  const shadow = await startShadow(t, { config: { ...sessionConfig, routes: own }, sessions: sessionsOf(key) });
  const bearer = `Bearer ${mintToken({ key: shadow.key })}`;
  for (const [path, cookie, reason] of [
    ['/orders', 'sAccessToken', 'subject_not_approved'],
    ['/elsewhere', 'sAccessToken', 'credential_ambiguous'],
  ] as const) {
    const session = { Cookie: `${cookie}=${mintSession({ key })}` };
    const ask = (headers = {}): Promise<string> => shadow.ask(bearer, headers, path);
    shadow.revoke();
    t.equal(await ask(session), `200 ${reason}`);
    for (const [rules, found] of [
      [{ keyIds: new Set([key.keyId]) }, 'key_revoked'],
      [{ subjects: new Set(['user-1']) }, 'subject_revoked'],
    ] as const) {
      shadow.revoke(rules);
      t.equal(await ask(session), `401 ${found}`);
      t.match(await ask(), /^200 /, 'its own token is not');
    }
    shadow.revoke({ subjects: new Set(['eve']) });
    t.equal(await ask(session), `200 ${reason}`, 'nor are others');
  }
});

t.test('a subject and a token id that are numbers, or under names in another case', async (t) => {
  const shadow = await startShadow(t);
  for (const [claims, rules] of [
    [{ sub: 42 }, { subjects: new Set(['42']) }],
    [{ jti: 42 }, { tokenIds: new Set(['42']) }],
    [{ Sub: 'eve' }, { subjects: new Set(['eve']) }],
  ] as const) {
    const bearer = `Bearer ${mintToken({ key: shadow.key, claims: { exp: 1, ...claims } })}`;
    shadow.revoke({ subjects: new Set(['43']), tokenIds: new Set(['43']) });
    t.match(await shadow.ask(bearer), /^200 /, JSON.stringify(claims));
    shadow.revoke(rules);
    t.match(await shadow.ask(bearer), /^401 (subject|token)_revoked/, JSON.stringify(claims));
  }
});

t.test('a revoked subject of an issuer that writes the ids of its keys as numbers', async (t) => {
  const key = rsaKey('7');
  const shadow = await startShadow(t, {
    config: otherIssuer('7'),
    find: (keyId) =>
      keyId === '7' ? { kind: 'found', key: { keyId, algorithm: 'RS256', key: key.publicKey } } : { kind: 'unknown' },
    adapt: (config) => config,
  });
  const claims = { iss: 'https://other.example', sub: 'eve' };
  const bearer = `Bearer ${mintToken({ key, claims, header: { kid: 7 } })}`;
  for (const [subject, expected] of [
    ['bob', /^200 /],
    ['eve', /^401 subject_revoked/],
  ] as const) {
    shadow.revoke({ subjects: new Set([subject]) });
    t.match(await shadow.ask(bearer), expected);
  }
});

t.test('a signature with characters in between that lax readers pass over', async (t) => {
  const session = rsaKey('d-session');
  const shadow = await startShadow(t, {
    config: { ...sessionConfig, routes: [...routes, userRoute] },
    sessions: sessionsOf(session),
  });
  const eve = mintToken({ key: shadow.key, claims: { sub: 'eve', exp: 1 } });
  for (const odd of [' ', '!', '~', '=']) {
    const asked = (): Promise<string> => shadow.ask(`Bearer ${eve.slice(0, -9)}${odd}${eve.slice(-9)}`);
    shadow.revoke();
    t.match(await asked(), /^200 /, `${odd}: shadow mode lets it pass`);
    shadow.revoke({ subjects: new Set(['eve']) });
    t.equal(await asked(), '401 subject_revoked', odd);
  }
  const four = ['1', '2', '3', '4'].map((jti) => mintToken({ key: shadow.key, claims: { jti } }));
  t.equal(await shadow.ask(`Bearer ${four.join(', ')}`), '200 credential_malformed', 'four are not more by it');
  t.equal(await shadow.ask(`Bearer ${[...four, eve].join(', ')}`), '401 credential_ambiguous');
});

t.test('very many cookies are not looked up', async (t) => {
  const key = rsaKey('d-lost');
  const shadow = await startShadow(t, {
    config: { ...sessionConfig, routes: [...routes, userRoute] },
    sessions: sessionsOf(key),
  });
  const many = (count: number): string =>
    Array.from({ length: count }, (_, at) => `sAccessToken=a${String(at)}.b.c`).join('; ');
  const odd = `${base64url('{"kid":"d-ok","kid":"d-lost"}')}.e30.c2ln`;
  shadow.revoke({ keyIds: new Set(['d-lost']) });
  t.equal(await shadow.ask('', { Cookie: `${many(15)}; sAccessToken=${odd}` }), '401 key_revoked');
  t.equal(await shadow.ask('', { Cookie: many(17) }), '401 credential_ambiguous');
  shadow.revoke({ keyIds: new Set(['d-other']) });
  t.match(await shadow.ask('', { Cookie: `${many(15)}; sAccessToken=${odd}` }), /^200 /);
});

t.test('while the keys are away nobody knows, however the token is spelt', async (t) => {
  let lookup: KeyLookup = { kind: 'unavailable' };
  const shadow = await startShadow(t, {
    config: { ...sessionConfig, routes: [...routes, userRoute] },
    sessions: sessionsOf(rsaKey('d-session')),
    find: () => lookup,
  });
  const past = Math.floor(Date.now() / 1_000) - 600;
  const mint = (header: Claims = {}, claims: Claims = {}): string =>
    mintToken({ key: shadow.key, claims: { exp: past, ...claims }, header });
  const spelt = `Bearer  ${mint()}`;
  t.equal(await shadow.ask(spelt), '200 credential_malformed', 'nothing is revoked');
  shadow.revoke({ keyIds: new Set(['d-other']) });
  t.equal(await shadow.ask(spelt), '200 credential_malformed', 'nothing that needs a key');
  shadow.revoke({ subjects: new Set(['eve']) });
  t.equal(await shadow.ask(spelt), '503 keys_unavailable');
  t.equal(await shadow.ask(`Bearer  ${mint({ kid: 's-1' })}`), '200 credential_malformed', 'no id of theirs');
  t.equal(await shadow.ask(`Bearer ${mint({ alg: 'HS256' })}`), '200 algorithm_refused', 'they have no such key');
  const ofSession = { Cookie: `sAccessToken=${mintSession({ key: rsaKey('d-gone') })}` };
  t.match(await shadow.ask('', ofSession), /^200 /, 'a session, of which other keys tell');
  lookup = { kind: 'busy' };
  t.equal(await shadow.ask(spelt), '503 overloaded');
  lookup = { kind: 'unknown' };
  t.equal(await shadow.ask(spelt), '200 credential_malformed');
});

t.test('an issuer whose keys are away keeps nobody out whose token is of another', async (t) => {
  const own = rsaKey('d-own');
  const shadow = await startShadow(t, {
    config: otherIssuer('d-*'),
    adapt: (config) => config,
  });
  const find = (keyId: string): KeyLookup =>
    keyId === own.keyId
      ? { kind: 'found', key: { keyId, algorithm: 'RS256', key: own.publicKey } }
      : { kind: 'unknown' };
  const { issuers } = shadow.activeConfig();
  for (const issuer of issuers) {
    Object.assign(issuer, {
      keys: {
        find: (keyId: string): KeyLookup => (issuer.rules.name === 'core' ? find(keyId) : { kind: 'unavailable' }),
      },
    });
  }
  shadow.revoke({ subjects: new Set(['eve']) });
  const mint = (iss: string, header: Claims = {}): string =>
    `Bearer  ${mintToken({ key: own, claims: { iss }, header })}`;
  t.equal(await shadow.ask(mint('https://api.example.com')), '200 credential_malformed', 'its signature holds');
  t.equal(await shadow.ask(mint('https://api.example.com', { kid: 'd-gone' })), '200 credential_malformed');
  t.equal(await shadow.ask(mint('https://other.example', { kid: 'd-gone' })), '503 keys_unavailable');
  shadow.revoke({ subjects: new Set(['eve']), issuer: 'https://api.example.com' });
  const gone = mint('https://other.example', { kid: 'd-gone' });
  t.equal(await shadow.ask(gone), '200 credential_malformed', 'of this issuer nothing is revoked');
  shadow.revoke({ subjects: new Set(['eve']), issuer: 'https://alias.example' });
  t.equal(await shadow.ask(gone), '503 keys_unavailable', 'this one may have the same keys');
});

t.test('of a request with very many words none is looked up', async (t) => {
  const shadow = await startShadow(t);
  const tokens = (count: number): string => Array.from({ length: count }, (_, at) => `x${String(at)}.e30.AA`).join(',');
  t.equal(await shadow.ask(`Bearer ${tokens(900)}`), '200 credential_malformed');
  for (const rules of [{ subjects: new Set(['eve']) }, { tokenDigests: new Set(['none']) }]) {
    shadow.revoke(rules);
    t.equal(await shadow.ask(`Bearer ${tokens(17)}`), '401 credential_ambiguous');
    t.equal(await shadow.ask(`Bearer ${tokens(16)}`), '200 credential_malformed');
  }
  shadow.revoke({ keyIds: new Set(['d-other']) });
  t.equal(await shadow.ask(`Bearer ${tokens(900)}`), '200 credential_malformed', 'key ids are read all the same');
});
