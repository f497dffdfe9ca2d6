import { timestamp } from '../../../lib/timestamp.js';
import { approvesSubject } from '../../../decision/route/approval.js';
import { sessionIssuerName } from '../../../decision/session/token.js';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import type { CompiledConfig } from '../../../config/types.js';
import { nearestName } from '../../../lib/did-you-mean.js';
import { isOpaque } from '../../../decision/token/introspection.js';
import { parseCompactJws, readPayload } from '../../../decision/token/compact-jws.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import type { JsonObject } from '../../../lib/strict-json.js';
import { tokenDigest } from '../../../decision/revocation/match.js';
import { checkRevocationValue, type RevocationKind } from '../../../decision/revocation/record.js';
import { readToken } from '../../stdin.js';
import type { Io } from '../../io.js';
import { isB64Token } from '../../../lib/text.js';

/** What is to be revoked, as arguments say it. */
export interface TargetOptions {
  readonly keyId?: string;
  readonly subject?: string;
  readonly tokenId?: string;
  readonly tokenStdin?: true;
  /** Milliseconds since the epoch. */
  readonly issuedBefore?: number;
}

interface Target {
  readonly kind: RevocationKind;
  readonly value: string;
  readonly notes: readonly string[];
}

interface Circumstances {
  readonly config: CompiledConfig;
  readonly issuerName: string | null;
  readonly holdsMs: number;
  readonly nowMs: number;
}

const names = {
  keyId: 'key_id',
  subject: 'subject',
  tokenId: 'token_id',
  tokenStdin: 'token',
  issuedBefore: 'issued_before',
} as const satisfies Readonly<Record<keyof TargetOptions, RevocationKind>>;

const options: Readonly<Record<'key_id' | 'subject' | 'token_id', string>> = {
  key_id: '--key-id',
  subject: '--subject',
  token_id: '--token-id',
};

/** What sort of thing is to be revoked; `null` where nothing is named. */
export function chosenKind(given: TargetOptions): RevocationKind | 'several' | null {
  const chosen = (Object.keys(names) as (keyof typeof names)[]).filter((name) => given[name] !== undefined);
  const [first] = chosen;
  return first === undefined ? null : chosen.length > 1 ? 'several' : names[first];
}

/** The `iss` of the issuer that an argument names; `null` where it names none. */
export function issuerOf(
  name: string | undefined,
  { issuers, sessions }: CompiledConfig,
): Result<string | null, StartFailure> {
  if (name === undefined) return accept(null);
  const known = new Map(issuers.map(({ rules }) => [rules.name, rules.issuer]));
  if (sessions !== null && !known.has('sessions')) known.set('sessions', sessions.issuer);
  const issuer = known.get(name);
  if (issuer !== undefined) return accept(issuer);
  return refuse(
    startFailure('unreadable', `--issuer: no such issuer in the config; allowed: ${[...known.keys()].join(', ')}`),
  );
}

/** Reads what is to be revoked. What is wrong with it is said without it: somebody may have pasted a token. */
export async function targetOf(
  given: TargetOptions,
  circumstances: Circumstances,
  io: Io,
): Promise<Result<Target, StartFailure>> {
  const { nowMs, holdsMs } = circumstances;
  if (given.tokenStdin === true) return tokenTarget(circumstances, io);
  if (given.issuedBefore !== undefined) {
    const notes =
      given.issuedBefore > nowMs ? ['the time lies ahead: until then every token is refused, new ones as well'] : [];
    const value = new Date(given.issuedBefore).toISOString();
    const checked = checkRevocationValue('issued_before', value);
    if (!checked.ok) return refuse(startFailure('unreadable', `--issued-before: allowed: ${checked.error}`));
    return accept({ kind: 'issued_before', value, notes: [...notes, ...endsEarly(circumstances, 'issued_before')] });
  }
  const kind = given.keyId !== undefined ? 'key_id' : given.subject !== undefined ? 'subject' : 'token_id';
  const value = given.keyId ?? given.subject ?? given.tokenId ?? '';
  if (/^ey[\w-]+\.[\w-]+\.[\w-]*$/.test(value)) {
    return refuse(
      startFailure(
        'unreadable',
        `${options[kind]}: tokens are not taken from arguments; allowed: on standard input, with --token-stdin`,
      ),
    );
  }
  const checked = checkRevocationValue(kind, value);
  if (!checked.ok) return refuse(startFailure('unreadable', `${options[kind]}: allowed: ${checked.error}`));
  if (kind === 'subject') return accept({ kind, value, notes: ofSubject(value, circumstances) });
  // What stops single tokens has to outlast them.
  return accept({ kind, value, notes: holdsMs <= 0 ? [] : endsEarly(circumstances, kind) });
}

/** A caller may be kept out for however long; of a user all sessions are to end. */
function ofSubject(subject: string, circumstances: Circumstances): readonly string[] {
  const { config, issuerName, holdsMs } = circumstances;
  const isCaller = issuerName === null && isApproved(subject, config);
  return [
    ...unknownSubject(subject, circumstances),
    ...(holdsMs <= 0 || isCaller ? [] : endsBeforeSessions(circumstances)),
  ];
}

function isApproved(subject: string, { routes }: CompiledConfig): boolean {
  return routes.some(({ approvals }) => approvals.some((approval) => approvesSubject(approval, subject)));
}

/**
 * Says so where no route names the subject: in an incident, a name that is mistyped would keep nobody out. It is
 * revoked all the same.
 */
function unknownSubject(subject: string, { config, issuerName }: Circumstances): readonly string[] {
  if (isApproved(subject, config)) return [];
  const { routes, sessions } = config;
  const known = new Set(routes.flatMap(({ approvals }) => approvals.flatMap(({ subjects }) => [...subjects])));
  const near = nearestName(subject, [...known]);
  // Ids of users stand in no config.
  const mayBeUser = sessions !== null && (issuerName === null || issuerName === sessionIssuerName);
  if (near === null && mayBeUser) return [];
  return [
    `warning: no route names this subject${near === null ? '' : `; did you mean ${near}?`} (it is revoked all the same)`,
  ];
}

async function tokenTarget(circumstances: Circumstances, io: Io): Promise<Result<Target, StartFailure>> {
  const token = await readToken(io);
  if (!token.ok) return token;
  const claims = isOpaqueOf(token.value, circumstances) ? {} : claimsOf(token.value);
  if (claims === null) {
    const allowed =
      'a whole token: header, payload and signature in base64url with dots between, or an opaque one of an issuer with introspection';
    return refuse(
      startFailure('unreadable', `standard input: nothing that a proxy would take for a token; allowed: ${allowed}`),
    );
  }
  const expiresAtS = claimedExpiryS(claims);
  const { nowMs, holdsMs } = circumstances;
  const longestSkewS = 60;
  const notes =
    expiresAtS === null
      ? endsBeforeTokens(circumstances)
      : (expiresAtS + longestSkewS) * 1_000 > nowMs + holdsMs
        ? [`the revocation ends before the token does: it expires at ${timestamp(expiresAtS * 1_000)}`]
        : [];
  return accept({ kind: 'token', value: tokenDigest(token.value), notes });
}

/** Whether an issuer of the config may be asked about it: then all of it is what names it. */
function isOpaqueOf(token: string, { config: { issuers } }: Circumstances): boolean {
  return (
    isOpaque(token) &&
    isB64Token(token) &&
    issuers.some(({ introspection }) => introspection !== null && token.startsWith(introspection.rules.tokenPrefix))
  );
}

/**
 * What the token says, or `null` where no proxy would look at it: revoking a part of a token would stop nothing. The
 * signature may have been taken out, as some logs do: the digest is of what was signed. Of any length, since shadow
 * mode finds tokens that are too long to be accepted.
 */
function claimsOf(token: string): JsonObject | null {
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return null;
  const parsed = parseCompactJws(`${token.slice(0, token.lastIndexOf('.'))}.AA`, () => accept(''), Infinity);
  const payload = parsed.ok ? readPayload(parsed.value) : parsed;
  return payload.ok ? payload.value : null;
}

/** When the token says that it ends. Nothing has verified that: it is good for a note only. */
function claimedExpiryS({ exp }: JsonObject): number | null {
  return typeof exp === 'number' && exp > 0 && exp < 1e11 ? exp : null;
}

/** Says so where a token, or a session's, that was issued just now would outlive the revocation. */
function endsEarly(circumstances: Circumstances, kind: RevocationKind): readonly string[] {
  const notes = endsBeforeTokens(circumstances);
  // Tokens of sessions have no id.
  return kind === 'token_id' ? notes : [...notes, ...endsBeforeSessions(circumstances)];
}

function endsBeforeTokens({ config: { issuers }, issuerName, holdsMs }: Circumstances): readonly string[] {
  const meant = issuers.filter(({ rules: { name } }) => issuerName === null || issuerName === name);
  const longestS = Math.max(0, ...meant.map(({ rules: { maxLifetimeS, clockSkewS } }) => maxLifetimeS + clockSkewS));
  if (holdsMs >= longestS * 1_000) return [];
  return [
    `the revocation may end before the tokens that it is meant for: the longest life of one is ${String(longestS)} s`,
  ];
}

/** How long the Core has the access token of a session live, unless its own config says otherwise; milliseconds. */
const usualSessionMs = 3_600_000;

function endsBeforeSessions({ config: { sessions }, issuerName, holdsMs }: Circumstances): readonly string[] {
  const isMeant = sessions !== null && (issuerName === null || issuerName === sessionIssuerName);
  if (!isMeant || holdsMs >= usualSessionMs) return [];
  return [
    'the revocation may end before the access tokens of sessions: --for has to be at least access_token_validity' +
      ' of the Core, an hour unless its config says otherwise',
  ];
}
