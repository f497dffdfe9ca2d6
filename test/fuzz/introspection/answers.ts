/** Answers about opaque tokens: sound ones, and ones that say something wrong, in a wrong way or not to the end. */
import { gzipSync } from 'node:zlib';
import { base64url } from '../../support/tokens.js';
import { once, pick, type Draw } from '../draw.js';
import type { Field } from '../model-fields.js';
import { bytesOf } from '../model-policy.js';
import { changedClaims, soundClaims, type Entry } from '../profiles/profile-claims.js';
import {
  changedHeader,
  entriesOf,
  otherAlgorithms,
  signedBy,
  spelled,
  wronglySigned,
} from '../profiles/profile-tokens.js';
import type { Signer } from '../profiles/worlds.js';
import type { Script } from './asked-issuer.js';
import { changedMembers, oddActive } from './members.js';
import type { AskedWorld, AskedWorldIssuer } from './worlds.js';

/** How an answer is sent. */
interface Draft {
  readonly version: '1.0' | '1.1';
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  readonly framing: 'length' | 'chunked' | 'close';
}

/** What is said of a token, at a moment in seconds since the epoch. */
export function someAnswer(draw: Draw, world: AskedWorld, issuer: AskedWorldIssuer, nowS: number): Script {
  // Mostly one thing at a time, since of two wrong things either may be what it is refused for.
  const wrong = pick(draw, [
    'nothing',
    'nothing',
    'members',
    'members',
    'members',
    'members',
    'active',
    'active',
    'http',
    'http',
    'http',
    'signed',
    'signed',
    'several',
  ]);
  const is = (part: string): boolean => wrong === part || (wrong === 'several' && once(draw, 2));
  const text = someMembers(draw, issuer, nowS, is);
  const isSigned = issuer.introspection.answer === 'jwt';
  const body = isSigned ? someSigned(draw, text, world, issuer, nowS, is('signed')) : text;
  const type = isSigned ? 'application/token-introspection+jwt' : 'application/json';
  const draft: Draft = {
    version: '1.1',
    status: 200,
    fields: [['Content-Type', pick(draw, [type, type, `${type};charset=utf-8`, type.toUpperCase()])]],
    body: Buffer.from(body),
    framing: pick(draw, ['length', 'length', 'length', 'chunked', 'close']),
  };
  return is('http') ? wronglySent(draw, draft, world, issuer) : sent(draw, draft);
}

function someMembers(
  draw: Draw,
  { rules, introspection }: AskedWorldIssuer,
  nowS: number,
  is: (part: string) => boolean,
): string {
  const { iss, aud, jti, ...others } = soundClaims(draw, rules, nowS);
  const members = {
    active: true,
    ...(once(draw, 3) ? {} : { iss }),
    ...(introspection.require_aud === false && once(draw, 2) ? {} : { aud }),
    ...(introspection.has_jti === true || once(draw, 2) ? { jti: jti ?? 't-7' } : {}),
    ...(once(draw, 2) ? { token_type: pick(draw, ['Bearer', 'bearer']) } : {}),
    ...others,
  };
  let entries = entriesOf(members);
  if (is('members')) {
    entries = once(draw, 3) ? changedMembers(draw, entries, nowS) : changedClaims(draw, entries, rules, nowS);
  }
  if (is('active')) entries = oddActive(draw, entries);
  return spelled(draw, entries);
}

/** RFC 9701 §5, and what is nearly that. */
function someSigned(
  draw: Draw,
  members: string,
  world: AskedWorld,
  issuer: AskedWorldIssuer,
  nowS: number,
  isWrong: boolean,
): string {
  const signer = pick(draw, issuer.signers);
  const { introspection } = issuer;
  const clients: unknown = once(draw, 2) ? introspection.client_id : ['other-client', introspection.client_id];
  const claims: readonly Entry[] = [
    ['iss', JSON.stringify(issuer.rules.issuer)],
    ['aud', JSON.stringify(clients)],
    ['iat', String(nowS)],
    ['token_introspection', members],
  ];
  const header = entriesOf({
    typ: pick(draw, ['token-introspection+jwt', 'application/Token-Introspection+JWT']),
    alg: signer.algorithm,
    kid: signer.keyId,
  });
  const token = (head: readonly Entry[], payload: readonly Entry[], by?: Signer): string => {
    const input = `${base64url(spelled(draw, head))}.${base64url(spelled(draw, payload))}`;
    const signature = by === undefined ? wronglySigned(draw, input, signer, world) : signedBy(by, input);
    return `${input}.${signature.toString('base64url')}`;
  };
  const alike = (algorithm: string): readonly Entry[] =>
    header.map(([name, json]): Entry => [name, name === 'alg' ? JSON.stringify(algorithm) : json]);
  if (!isWrong) return token(header, claims, signer);
  const other = pick(draw, otherAlgorithms(issuer, signer));
  switch (draw.below(8)) {
    case 0:
      return token(header, claims);
    case 1:
      // A shared secret, or none at all: what anybody can make who knows the public key.
      return token(alike(pick(draw, ['none', 'HS256', 'HS512', 'None'])), claims);
    case 2:
      return token(alike(other), claims, once(draw, 2) ? signer : { ...signer, algorithm: other });
    case 3:
      return token(changedType(draw, header), claims, signer);
    case 4:
      return token(changedHeader(draw, header, signer), claims, signer);
    case 5: {
      const by = pick(draw, pick(draw, world.issuers).signers);
      return token(header, claims, by);
    }
    case 6:
      return pick(draw, [members, `${token(header, claims, signer)}\n`, token(header, claims, signer).slice(0, -30)]);
    default:
      return token(header, changedWrapper(draw, claims, members, introspection.client_id, nowS), signer);
  }
}

function changedType(draw: Draw, header: readonly Entry[]): readonly Entry[] {
  const type = pick(draw, ['JWT', 'at+jwt', 'token-introspection', 'introspection+jwt', null, ['x'], '']);
  const rest = header.filter(([name]) => name !== 'typ');
  return once(draw, 3) ? rest : [...rest, ['typ', JSON.stringify(type)]];
}

function changedWrapper(
  draw: Draw,
  claims: readonly Entry[],
  members: string,
  client: string,
  nowS: number,
): readonly Entry[] {
  const times = [nowS - 1, nowS - 5, nowS - 6, nowS - 61, nowS + 1, nowS + 5, nowS + 6, nowS + 61, nowS - 86_400];
  const moments = [...times, String(nowS), nowS + 0.5, null, true];
  const values: Readonly<Record<string, readonly unknown[]>> = {
    iss: ['https://two.example.com', 'https://one.example.com/', null, 5, ['https://one.example.com']],
    aud: [
      'other-client',
      `${client}x`,
      client.toUpperCase(),
      '',
      null,
      [],
      ['other-client'],
      [client, 5],
      [null, client],
      { [client]: true },
      [[client]],
      [...Array.from({ length: 100 }, () => 'x'), client],
    ],
    iat: moments,
    exp: moments,
    nbf: moments,
    token_introspection: [null, true, 'active', [], {}, { active: 'true' }, [{ active: true }], members],
  };
  const name = pick(draw, ['iss', 'aud', 'aud', 'iat', 'iat', 'exp', 'nbf', 'token_introspection']);
  const value: Entry = [name, JSON.stringify(pick(draw, values[name] ?? []))];
  const rest = claims.filter(([known]) => known !== name);
  switch (draw.below(6)) {
    case 0:
      // What it says of the token stands outside, as in an access token.
      return name === 'token_introspection' ? [...rest, ['active', 'true'], ['sub', '"checkout"']] : rest;
    case 1:
      return once(draw, 2) ? [...claims, value] : [value, ...claims];
    default:
      return [...rest, value];
  }
}

/** As it should be sent. */
function sent(draw: Draw, draft: Draft): Script {
  const { body, framing } = draft;
  const pieces = framing === 'chunked' ? chunksOf(draw, body) : [body];
  return whole(draft, [headOf(draft), ...pieces], framing === 'close' ? 'close' : 'keep');
}

function wronglySent(draw: Draw, draft: Draft, world: AskedWorld, { introspection }: AskedWorldIssuer): Script {
  const { body } = draft;
  const typed = (...types: readonly string[]): Field[] => types.map((type): Field => ['Content-Type', type]);
  const type = draft.fields[0]?.[1] ?? '';
  switch (draw.below(14)) {
    case 0: {
      const status = pick(draw, [400, 401, 403, 404, 500, 503, 429, 201, 202, 206, 299]);
      return sent(draw, { ...draft, status });
    }
    case 1:
      return sent(draw, { ...draft, status: pick(draw, [204, 304]), body: Buffer.alloc(0), framing: 'length' });
    case 2: {
      const elsewhere: Field = ['Location', pick(draw, ['/elsewhere', `${world.url}/elsewhere`])];
      return sent(draw, {
        ...draft,
        status: pick(draw, [301, 302, 303, 307, 308, 300]),
        fields: [...draft.fields, elsewhere],
      });
    }
    case 3: {
      const types = [
        typed('text/html'),
        typed('text/plain; charset=utf-8'),
        typed('application/jwt'),
        typed('application/json', 'text/html'),
        typed('text/html', 'application/json'),
        typed('application/json, text/html'),
        typed('application/problem+json'),
        typed('application/token-introspection+jwt'),
        typed('application/json'),
        typed('application/jsonx'),
        typed('json'),
        typed(''),
        [],
      ];
      return sent(draw, { ...draft, fields: pick(draw, types) });
    }
    case 4: {
      const coding = pick(draw, ['gzip', 'gzip', 'br', 'identity', 'gzip, gzip']);
      const coded = coding === 'gzip' ? gzipSync(body) : body;
      return sent(draw, { ...draft, body: coded, fields: [...draft.fields, ['Content-Encoding', coding]] });
    }
    case 5:
    case 6: {
      const most = bytesOf(introspection.max_bytes ?? '64KiB');
      const length = pick(draw, [most - 1, most, most, most + 1, most + 1, 3 * most]);
      const padding = Buffer.alloc(Math.max(0, length - body.length), ' ');
      return sent(draw, { ...draft, body: Buffer.concat(once(draw, 2) ? [body, padding] : [padding, body]) });
    }
    case 7:
      return torn(draw, draft);
    case 8:
      return torn(draw, draft);
    case 9: {
      const early = pick(draw, ['103 Early Hints\r\nLink: </x>; rel=preload', '102 Processing', '103 Early Hints']);
      const script = sent(draw, draft);
      return { ...script, pieces: [Buffer.from(`HTTP/1.1 ${early}\r\n\r\n`), ...script.pieces] };
    }
    case 10: {
      // A second answer that nobody asked for has to be lost.
      const second: Draft = { ...draft, body: Buffer.from('{"active":true}'), framing: 'length' };
      const script = sent(draw, { ...draft, framing: 'length' });
      return { ...script, pieces: [Buffer.concat([...script.pieces, headOf(second), second.body])], end: 'close' };
    }
    case 11: {
      const other = pick(draw, [
        '',
        '[]',
        'null',
        'true',
        '{}',
        '<html>',
        '"active"',
        '1',
        '{"active"',
        '[{"active":true}]',
      ]);
      return sent(draw, { ...draft, body: Buffer.from(other) });
    }
    case 12: {
      const text = body.toString();
      const others = [
        Buffer.from(`\ufeff${text}`),
        Buffer.from(text, 'utf16le'),
        Buffer.from(text.replace('checkout', 'caf\u00e9'), 'latin1'),
        Buffer.from(`${text.slice(0, -1)},"x":"\u00e9"}`, 'latin1'),
        Buffer.from(`${text.slice(0, -1)},"x":"\u00e9"}`),
        Buffer.from(` \r\n\t${text}\n`),
        Buffer.from(`/**/${text}`),
        Buffer.from(`${text.slice(0, -1)},}`),
        Buffer.from(`)]}'\n${text}`),
      ];
      return sent(draw, { ...draft, body: pick(draw, others) });
    }
    default: {
      // Of an old server, which ends what it says by closing; and one that says less of its length than it sends.
      if (once(draw, 2)) return sent(draw, { ...draft, version: '1.0', framing: 'close' });
      const cut = body.subarray(0, draw.below(Math.max(1, body.length - 1)));
      const short: Draft = { ...draft, fields: typed(type), body: cut, framing: 'length' };
      return whole(short, [Buffer.concat([headOf(short), body])], 'close');
    }
  }
}

/** What ends before it is over, or is no HTTP. */
function torn(draw: Draw, draft: Draft): Script {
  const { body } = draft;
  const [length, chunked]: readonly Draft[] = [
    { ...draft, framing: 'length' },
    { ...draft, framing: 'chunked' },
  ];
  if (length === undefined || chunked === undefined) throw new Error('two of them');
  const end = pick(draw, ['close', 'close', 'reset'] as const);
  const cut = draw.below(Math.max(1, body.length));
  const chunk = Buffer.from(`${body.length.toString(16)}\r\n`);
  const ways: readonly (readonly Buffer[])[] = [
    [headOf(length), body.subarray(0, cut)],
    [headOf(chunked), chunk, body.subarray(0, cut)],
    [headOf(chunked), chunk, body],
    [headOf(chunked), chunk, body, Buffer.from('\r\n')],
    [headOf(chunked), chunk, body, Buffer.from('\r\nxyz\r\n\r\n')],
    [headOf(length).subarray(0, draw.below(headOf(length).length - 1))],
    [],
    [Buffer.from('SSH-2.0-OpenSSH_9.2\r\n')],
    [body],
    [Buffer.from('HTTP/1.1 2OO OK\r\n\r\n'), body],
    [
      Buffer.from(headOf(length).toString('latin1').replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\n'), 'latin1'),
      body,
    ],
  ];
  const pieces = pick(draw, ways);
  return { ...draft, isWhole: false, pieces: pieces.length === 0 ? [] : [Buffer.concat(pieces)], end };
}

/** Nothing that is over in time: not even its head is. */
export function lateAnswer(draw: Draw, script: Script): Script {
  const bytes = Buffer.concat(script.pieces);
  const head = Math.max(0, bytes.indexOf('\r\n\r\n'));
  return { ...script, isWhole: false, pieces: [bytes.subarray(0, draw.below(head + 1))], end: 'hang' };
}

function whole({ status, fields, body }: Draft, pieces: readonly Buffer[], end: Script['end']): Script {
  return { status, fields, body, isWhole: true, pieces, end };
}

function headOf({ version, status, fields, body, framing }: Draft): Buffer {
  const length = status === 204 || status === 304 ? [] : [['Content-Length', String(body.length)] as const];
  const framed: readonly Field[] =
    framing === 'length'
      ? length
      : framing === 'chunked'
        ? [['Transfer-Encoding', 'chunked']]
        : [['Connection', 'close']];
  const lines = [...fields, ...framed].map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`HTTP/${version} ${String(status)} X\r\n${lines.join('')}\r\n`, 'latin1');
}

function chunksOf(draw: Draw, body: Buffer): readonly Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const part = body.subarray(at, at + 1 + draw.below(body.length));
    const extension = once(draw, 20) ? ';x=y' : '';
    chunks.push(Buffer.from(`${part.length.toString(16)}${extension}\r\n`), part, Buffer.from('\r\n'));
    at += part.length;
  }
  const trailer = once(draw, 10) ? 'X-Active: true\r\n' : '';
  return [Buffer.concat(chunks), Buffer.from(`0\r\n${trailer}\r\n`)];
}
