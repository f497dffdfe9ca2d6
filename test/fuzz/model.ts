/**
 * A deliberately slow and simple model of docs/contract.md 3 and 4: may this request reach the receiver, and as what?
 * It is written from the contract alone and imports nothing of `src`, so that a mistake there is not repeated here.
 */
import { certificateShown, possession, type Listening, type ShownCertificate } from './model-bound-tokens.js';
import type { Oracle } from './introspection/model-answers.js';
import { hopFields, readFieldsSlowly, type Field, type ReadFields } from './model-fields.js';
import { bytesOf, findRoute, type Policy, type PolicyRoute, type PolicySubject } from './model-policy.js';
import { credentialOf, meetsClaims, readUser, withoutSession, type User } from './model-session.js';
import { readTargetSlowly } from './model-target.js';
import { isWithdrawn, readCaller } from './model-token.js';
import { mayOpen, refusedHandshake } from './model-websocket.js';
import type { Caller } from './profiles/model-claims.js';
import type { ModelKeys } from './profiles/model-keys.js';
import type { PublicNumbers } from './profiles/model-signatures.js';

/** A request as far as its head. */
export interface Head {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: readonly Field[];
}

/** What has to become of it. */
export type Expected =
  /** Any of these statuses; more than one where the contract leaves the order of two refusals open. */
  | { readonly kind: 'refused'; readonly statuses: readonly number[] }
  | {
      readonly kind: 'forwarded';
      readonly route: string;
      /** Names and values that the receiver gets, `null` for values that are made up. */
      readonly fields: readonly (readonly [name: string, value: string | null])[];
      readonly identity: readonly Field[];
      readonly maxBodyBytes: number;
      /** Whether it opens a WebSocket connection. */
      readonly opens: boolean;
    };

/** What the model knows besides the request. */
export interface Surroundings {
  readonly policy: Policy;
  /** By issuer and key id. */
  readonly keys: ReadonlyMap<string, ModelKeys>;
  /** By key id: of whom sessions are made by. */
  readonly sessionKeys: ReadonlyMap<string, PublicNumbers>;
  readonly nowMs: number;
  /** The Host that the receiver gets. */
  readonly upstreamHost: string;
  readonly callerAddress: string;
  readonly listening: Listening;
  /** What issuers say of opaque tokens; left out where none is asked. */
  readonly said?: Oracle;
}

const maxHeaderBytes = 16 * 1024;
const maxTargetBytes = 8 * 1024;

/** Judges a request. */
export function judge(head: Head, surroundings: Surroundings): Expected {
  const { policy } = surroundings;
  const bytes =
    head.method.length +
    head.target.length +
    head.fields.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 16);
  if (bytes > maxHeaderBytes) return refused(431);
  if (!/^[A-Z0-9!#$%&'*+.^_`|~-]+$/.test(head.method)) return refused(400);
  if (['TRACE', 'TRACK', 'CONNECT', 'PRI'].includes(head.method)) return refused(405);
  const target = readTargetSlowly(head.target, maxTargetBytes);
  if (target.status !== null) return refused(target.status);
  const fields = readFieldsSlowly(head.version, head.fields, policy);
  if (fields.status !== null) return refused(fields.status);
  const hasBody = fields.chunked || (fields.contentLength ?? 0) > 0;
  if (fields.protocols.length > 0) {
    const status = refusedHandshake({ ...fields, method: head.method, version: head.version, hasBody });
    if (!policy.routes.some((route) => route.websocket === true)) return refused(400);
    if (status !== null) return refused(status);
  }
  if (target.hasEncodedSlash && !policy.routes.some((route) => route.encoded_slashes === 'allow')) return refused(400);
  if (target.hasParameters && !policy.routes.some((route) => route.path_parameters === 'allow')) return refused(400);
  const bodyWithGet = hasBody && ['GET', 'HEAD'].includes(head.method);
  if (bodyWithGet && !policy.routes.some((route) => route.body === 'allow')) return refused(400);

  const found = findRoute(policy, head.method, target.segments);
  const fits =
    found !== null &&
    !(target.hasEncodedSlash && found.encoded_slashes !== 'allow') &&
    !(target.hasParameters && found.path_parameters !== 'allow');
  if (found?.access === 'public') {
    return fits ? conclude(found, null, fields, bodyWithGet, surroundings, head) : refused(400);
  }

  // A path that the route does not take in this spelling is no path of it: either kind of credential may be shown to
  // learn that.
  const shown = credentialOf(fits ? found : null, policy, fields.passed, fields.authorization);
  if (shown === null) return refused(401);
  const user =
    shown.kind === 'session'
      ? readUser(shown, head.method, fields.passed, policy, surroundings.sessionKeys, surroundings.nowMs)
      : null;
  if (typeof user === 'number') return refused(user);
  const caller = user ?? readCaller(shown.token, policy, surroundings.keys, surroundings.nowMs, surroundings.said);
  if (typeof caller === 'number') return refused(caller);
  const taken =
    found === null || !fits || 'claims' in caller ? caller : takenOn(found, caller, shown.token, surroundings);
  if (taken === null) return refused(401);
  const certificate = certificateShown(head.fields, surroundings.listening);
  if (shown.kind === 'service' && 'confirmation' in taken) {
    const path = head.target.split('?')[0] ?? '';
    const sent = { ...shown, method: head.method, path, proofs: fields.proofs, certificate };
    const proved = possession(taken.confirmation, sent, surroundings.listening, surroundings.nowMs);
    if (proved !== 200) return refused(proved);
  }
  if (isWithdrawn(policy, taken)) return refused(401);
  if (found === null || !fits) return refused(target.hasEncodedSlash || target.hasParameters ? 400 : 403);
  const isApprovedHere = 'claims' in taken ? meetsClaims(found, taken) : isApproved(found, taken);
  const isKnown = found.client_certificates?.includes(certificate?.name ?? '') ?? true;
  return isApprovedHere && isKnown ? conclude(found, taken, fields, bodyWithGet, surroundings, head) : refused(403);
}

/** The caller as one of the route's issuers has it, where several have signed the same; `null` where none has. */
function takenOn(
  { issuers }: PolicyRoute,
  caller: Caller,
  token: string,
  { policy, keys, nowMs, said }: Surroundings,
): Caller | null {
  if (issuers === undefined || issuers.includes(caller.issuerName)) return caller;
  const own = Object.entries(policy.issuers).filter(([name]) => issuers.includes(name));
  const second = readCaller(token, { ...policy, issuers: Object.fromEntries(own) }, keys, nowMs, said);
  return typeof second === 'number' ? null : second;
}

function conclude(
  route: PolicyRoute,
  caller: Caller | User | null,
  fields: Extract<ReadFields, { status: null }>,
  bodyWithGet: boolean,
  surroundings: Surroundings,
  head: Head,
): Expected {
  const opens = fields.protocols.length > 0;
  const isSession = caller !== null && 'claims' in caller;
  const isOpener =
    !opens || mayOpen(route, fields.passed, { isSession, inCookie: fields.authorization === null, host: fields.host });
  if (opens && route.websocket !== true) return isOpener ? refused(400) : refused(400, 403);
  if (!isOpener) return refused(403);
  if (bodyWithGet && route.body !== 'allow') return refused(400);
  const maxBodyBytes = bytesOf(route.max_body);
  if ((fields.contentLength ?? 0) > maxBodyBytes) return refused(413);
  const passed =
    route.accept?.includes('session') === true && route.session?.forward_tokens !== true
      ? withoutSession(fields.passed)
      : fields.passed;
  const { policy, listening, upstreamHost, callerAddress } = surroundings;
  const identity = caller === null ? [] : identityOf(policy, caller, certificateShown(head.fields, listening));
  const authorization: Field[] =
    route.forward_authorization === true && fields.authorization !== null
      ? [['Authorization', fields.authorization]]
      : [];
  const proof: Field[] =
    route.forward_authorization === true && fields.proofs.length > 0 ? [['DPoP', fields.proofs.join(', ')]] : [];
  return {
    kind: 'forwarded',
    route: route.name,
    identity,
    maxBodyBytes,
    opens,
    fields: [
      ['Host', upstreamHost],
      ...passed,
      ...(fields.takesTrailers && !opens ? [['TE', 'trailers'] as const] : []),
      ...authorization,
      ...proof,
      ...(fields.contentLength === null ? [] : [['Content-Length', String(fields.contentLength)] as const]),
      ...hopFields(fields, listening.trusted, { address: callerAddress, via: `${head.version} sallyport` }),
      ['X-Request-Id', fields.requestId],
      ['traceparent', fields.traceparent],
      ...(fields.tracestate === null ? [] : [['tracestate', fields.tracestate] as const]),
      ...identity,
    ],
  };
}

function isApproved(route: PolicyRoute, caller: Caller): boolean {
  const pairs = route.any_of ?? [{ subjects: route.subjects ?? [], permissions: route.permissions ?? [] }];
  return pairs.some(
    (pair) =>
      pair.subjects.some((subject) => isApprovedAs(subject, caller.subject)) &&
      pair.permissions.every((permission) => caller.permissions.includes(permission)),
  );
}

/** docs/issuers.md, "Subjects": to the letter, or beginning so. */
function isApprovedAs(approved: PolicySubject, subject: string): boolean {
  return typeof approved === 'string'
    ? approved === subject
    : subject.slice(0, approved.prefix.length) === approved.prefix;
}

function identityOf({ identity }: Policy, caller: Caller | User, certificate: ShownCertificate | null): Field[] {
  const isUser = 'claims' in caller;
  return [
    [identity.subject, caller.subject],
    [identity.issuer, caller.issuer],
    [identity.permissions, isUser ? '' : caller.permissions.join(' ')],
    ...(caller.tokenId === null ? [] : [[identity.token_id, caller.tokenId] as const]),
    [identity.kind, isUser ? 'session' : 'service'],
    ...(identity.client_certificate === undefined || (certificate?.name ?? null) === null
      ? []
      : [[identity.client_certificate, certificate?.name ?? ''] as const]),
  ];
}

function refused(...statuses: readonly number[]): Expected {
  return { kind: 'refused', statuses };
}
