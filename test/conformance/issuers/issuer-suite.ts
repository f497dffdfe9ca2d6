/** What the suites of the profiles share: a proxy between an issuer's server and a receiver, and rows of tokens. */
import { createHmac, sign } from 'node:crypto';
import type { Test } from 'tap';
import { keyFor, signatureBy, type AnyKey } from '../../support/profile-tokens.js';
import type { ProxyProcess } from '../../support/proxy-process.js';
import { base64url, type Claims } from '../../support/tokens.js';
import { checkRefusal, comparable, refusals } from '../refusals.js';

/** A token and what is odd about it. */
export interface Row {
  readonly name: string;
  readonly token: string;
}

/** Whom the receiver has to take the caller for. */
export interface Identity {
  readonly subject: string;
  readonly issuer: string;
  readonly permissions?: string;
  readonly tokenId?: string;
}

export interface Suite {
  /** Each of them passes, as this caller. */
  readonly passes: (t: Test, rows: readonly Row[], identity: Identity, path?: string) => Promise<void>;
  /** Each of them is the same 401, and none is sent on. */
  readonly refuses: (t: Test, rows: readonly Row[], path?: string) => Promise<void>;
  /** All 401 so far, without what differs in every answer. */
  readonly answers: ReadonlySet<string>;
  readonly send: (token: string, path?: string) => ReturnType<ProxyProcess['request']>;
}

export function suiteOf(proxy: ProxyProcess): Suite {
  const answers = new Set<string>();
  const send: Suite['send'] = async (token, path = '/all') => {
    proxy.markSecret(token);
    return proxy.request({ path, headers: { Authorization: `Bearer ${token}`, 'X-Auth-Subject': 'root' } });
  };
  return {
    answers,
    send,
    passes: async (t, rows, { subject, issuer, permissions = '', tokenId }, path) => {
      for (const { name, token } of rows) {
        const before = proxy.receiver.requests.length;
        t.equal((await send(token, path)).status, 200, name);
        const request = proxy.receiver.requests[before];
        const fields = ['kind', 'subject', 'issuer', 'permissions', 'token-id'].map((field) =>
          request?.field(`x-auth-${field}`),
        );
        const expected = [['service'], [subject], [issuer], [permissions], tokenId === undefined ? [] : [tokenId]];
        t.same(fields, expected, `${name}: who it is`);
        t.same(request?.field('authorization'), [], `${name}: the token ends here`);
      }
    },
    refuses: async (t, rows, path) => {
      const before = proxy.receiver.requests.length;
      for (const { name, token } of rows) {
        const response = await send(token, path);
        checkRefusal(t, response, refusals.unauthorized, name);
        answers.add(comparable(response));
      }
      t.equal(proxy.receiver.requests.length, before, 'none reached the receiver');
    },
  };
}

/** A token of these very texts. */
export function tokenOf(key: AnyKey, header: string, payload: string): string {
  const input = `${base64url(header)}.${base64url(payload)}`;
  return `${input}.${signatureBy(key.algorithm, key.privateKey, input).toString('base64url')}`;
}

/** What signs tokens of one issuer: its key, and a header and claims that hold. */
export interface Sound {
  readonly key: AnyKey;
  readonly header: Claims;
  readonly claims: Claims;
}

/** The sound token, with members changed; `undefined` takes one away. */
export function changed({ key, header, claims }: Sound, claim: Claims, member: Claims = {}): string {
  return tokenOf(key, JSON.stringify({ ...header, ...member }), JSON.stringify({ ...claims, ...claim }));
}

/** What is changed of sound claims; `undefined` takes one away. */
interface Change {
  readonly name: string;
  readonly claim: Claims;
}

const asTokens = (sound: Sound, changes: readonly Change[]): readonly Row[] =>
  changes.map(({ name, claim }) => ({ name, token: changed(sound, claim) }));

/** Each of these claims taken away. */
export function missingRows(sound: Sound, names: readonly string[]): readonly Row[] {
  return asTokens(sound, missingClaims(names));
}

export function missingClaims(names: readonly string[]): readonly Change[] {
  return names.map((name) => ({ name: `no ${name}`, claim: { [name]: undefined } }));
}

/** Each of these claims as something else, but for those forms that the claim may have. */
export function typeRows(sound: Sound, names: readonly string[], allowed: readonly string[] = []): readonly Row[] {
  return asTokens(sound, otherTypes(sound.claims, names, allowed));
}

export function otherTypes(claims: Claims, names: readonly string[], allowed: readonly string[]): readonly Change[] {
  return names.flatMap((name) => {
    const value = claims[name];
    const others: readonly (readonly [string, unknown])[] = [
      ['null', null],
      ['a number', typeof value === 'number' ? value + 0.5 : 5],
      ['a text', typeof value === 'number' ? String(value) : ''],
      ['true', true],
      ['a list', [value]],
      ['a map', { value }],
    ];
    return others
      .map(([form, other]) => ({ name: `${name} is ${form}`, claim: { [name]: other } }))
      .filter((row) => !allowed.includes(row.name));
  });
}

/** Each member of header and claims twice. */
export function doubledRows(sound: Sound): readonly Row[] {
  return [
    ...doubledMembers(sound.claims).map(([name, text]) => ({
      name,
      token: tokenOf(sound.key, JSON.stringify(sound.header), text),
    })),
    ...doubledMembers(sound.header).map(([name, text]) => ({
      name: `header: ${name}`,
      token: tokenOf(sound.key, text, JSON.stringify(sound.claims)),
    })),
  ];
}

/** Texts with each of the members twice, with one value and with two, plainly and by an escape. */
export function doubledMembers(members: Claims): readonly (readonly [name: string, text: string])[] {
  return Object.entries(members).flatMap(([name, value]) => {
    const [text, json] = [JSON.stringify(members), JSON.stringify(value)];
    const escaped = `\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}`;
    return [
      [`${name} twice`, `{${JSON.stringify(name)}:${json},${text.slice(1)}`],
      [`${name} and another`, `{${JSON.stringify(name)}:"other",${text.slice(1)}`],
      [`${name} twice, once escaped`, `${text.slice(0, -1)},"${escaped}":${json}}`],
    ] as const;
  });
}

/** Lists within lists, so that the claims are so many levels deep; 16 are allowed. */
export function deepClaims(levels: number): Claims {
  let value: unknown = 1;
  for (let level = 1; level < levels; level++) value = [value];
  return { extra: value };
}

/** Texts that are no JSON object of one reading. */
export function malformedRows(sound: Sound): readonly Row[] {
  const [header, payload] = [JSON.stringify(sound.header), JSON.stringify(sound.claims)];
  const texts = [`${payload}{}`, `\ufeff${payload}`, `${payload}\0`, `[${payload}]`, '""', payload.slice(0, -1)];
  const token = tokenOf(sound.key, header, payload);
  return [
    { name: '17 levels', token: changed(sound, deepClaims(17)) },
    { name: '17 levels in the header', token: changed(sound, {}, deepClaims(17)) },
    { name: 'half of a surrogate pair', token: tokenOf(sound.key, header, `${payload.slice(0, -1)},"x":"\\ud800"}`) },
    ...texts.map((text, index) => ({ name: `payload ${String(index)}`, token: tokenOf(sound.key, header, text) })),
    { name: 'padding', token: `${token}=` },
    { name: 'four parts', token: `${token}.x` },
    { name: 'two parts', token: token.slice(0, token.lastIndexOf('.')) },
    { name: 'no signature', token: token.slice(0, token.lastIndexOf('.') + 1) },
    { name: 'beyond 8 KiB', token: changed(sound, { extra: 'x'.repeat(8192) }) },
  ];
}

/** Members that change how a token is read, or bring a key along. */
export function refusedMemberRows(sound: Sound): readonly Row[] {
  const other = keyFor(sound.key.algorithm, 'somebody else');
  const members: readonly Claims[] = [
    { crit: ['exp'] },
    { crit: [] },
    { crit: ['b64'], b64: false },
    { b64: true },
    { jku: 'http://127.0.0.1/jwks.json' },
    { jwk: other.jwk },
    { x5u: 'http://127.0.0.1/x5u' },
    { x5c: ['MIIB'] },
    { enc: 'A128GCM' },
    { zip: 'DEF' },
  ];
  return [
    ...members.map((member) => ({ name: JSON.stringify(member).slice(0, 40), token: changed(sound, {}, member) })),
    { name: 'a key of its own', token: changed({ ...sound, key: { ...other, keyId: 'x' } }, {}, { jwk: other.jwk }) },
  ];
}

/** Claims that mark sessions of users: none of a service's tokens has them. */
export function sessionRows(sound: Sound): readonly Row[] {
  return ['sessionHandle', 'refreshTokenHash1', 'stt'].flatMap((name) =>
    ['x', null].map((value) => ({ name: `${name} ${String(value)}`, token: changed(sound, { [name]: value }) })),
  );
}

/** `exp`, `nbf` and `iat` beyond what the defaults allow: 5 s of skew, a life of 2 h. */
export function timeRows(sound: Sound, nowS: number): readonly Row[] {
  return asTokens(sound, oddTimes(nowS));
}

export function oddTimes(nowS: number): readonly Change[] {
  const claims: readonly Claims[] = [
    { exp: nowS - 60, iat: nowS - 300 },
    { exp: nowS - 6, iat: nowS - 300 },
    { nbf: nowS + 120 },
    { nbf: String(nowS) },
    { nbf: null },
    { iat: nowS + 120 },
    { iat: nowS - 10, exp: nowS + 7_195 },
    { exp: nowS + 90_000 },
    { exp: 1e300 },
    { exp: -1 },
  ];
  return claims.map((claim) => ({ name: JSON.stringify(claim), claim }));
}

/** A header that says one thing, and a signature that is another. */
export function confusionRows(sound: Sound, keys: readonly AnyKey[]): readonly Row[] {
  const payload = base64url(JSON.stringify(sound.claims));
  const signed = (member: Claims, signature: (input: string) => Buffer): string => {
    const input = `${base64url(JSON.stringify({ ...sound.header, ...member }))}.${payload}`;
    return `${input}.${signature(input).toString('base64url')}`;
  };
  return keys.flatMap((key) => {
    const own = { alg: key.algorithm, kid: key.keyId };
    const by =
      (algorithm: AnyKey['algorithm'], other = key) =>
      (input: string) =>
        signatureBy(algorithm, other.privateKey, input);
    const stranger = keyFor(key.algorithm, 'somebody else');
    const secrets = [
      key.publicKey.export({ format: 'pem', type: 'spki' }),
      key.publicKey.export({ format: 'der', type: 'spki' }),
      JSON.stringify(key.jwk),
      '',
    ];
    const others = keys.filter((other) => other.algorithm !== key.algorithm);
    const rows: Row[] = [
      ...[
        'none',
        'None',
        'HS256',
        'HS512',
        key.algorithm.toLowerCase(),
        `${key.algorithm} `,
        '',
        5,
        null,
        undefined,
      ].map((alg) => ({ name: `alg ${JSON.stringify(alg)}`, token: signed({ ...own, alg }, by(key.algorithm)) })),
      ...secrets.flatMap((secret, index) =>
        ['HS256', key.algorithm].map((alg) => ({
          name: `${alg}, with the public key as a secret, form ${String(index)}`,
          token: signed({ ...own, alg }, (input) => createHmac('sha256', secret).update(input).digest()),
        })),
      ),
      ...others.flatMap((other) => [
        { name: `kid of ${other.algorithm}`, token: signed({ ...own, kid: other.keyId }, by(key.algorithm)) },
        { name: `alg ${other.algorithm}`, token: signed({ ...own, alg: other.algorithm }, by(key.algorithm)) },
        { name: `signed by ${other.algorithm}`, token: signed(own, by(other.algorithm, other)) },
      ]),
      ...(/^[RP]S/.test(key.algorithm) && stranger.publicKey.equals(key.publicKey)
        ? []
        : [{ name: 'somebody else’s key', token: signed(own, by(key.algorithm, stranger)) }]),
      { name: 'nothing signed', token: signed(own, () => Buffer.alloc(by(key.algorithm)('').length)) },
      { name: 'a byte less', token: signed(own, (input) => by(key.algorithm)(input).subarray(0, -1)) },
      {
        name: 'a byte more',
        token: signed(own, (input) => Buffer.concat([by(key.algorithm)(input), Buffer.alloc(1)])),
      },
      ...[undefined, '', 'unknown', null, 5, [key.keyId], `${key.keyId} `, '__proto__', 'x'.repeat(257)].map((kid) => ({
        name: `kid ${JSON.stringify(kid)}`,
        token: signed({ ...own, kid }, by(key.algorithm)),
      })),
      ...(key.algorithm.startsWith('ES')
        ? [
            {
              name: 'ECDSA in DER',
              token: signed(own, (input) =>
                sign(`sha${key.algorithm.slice(2)}`, Buffer.from(input), { key: key.privateKey, dsaEncoding: 'der' }),
              ),
            },
          ]
        : []),
      ...(key.algorithm.startsWith('PS')
        ? [0, 20, 48].map((saltLength) => ({
            name: `a salt of ${String(saltLength)}`,
            token: signed(own, (input) =>
              sign('sha256', Buffer.from(input), { key: key.privateKey, padding: 6, saltLength }),
            ),
          }))
        : []),
    ];
    return rows.map((row) => ({ ...row, name: `${key.algorithm}: ${row.name}` }));
  });
}
