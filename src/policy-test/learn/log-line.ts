/** Reads what shadow mode wrote down of one request. */
import { readMethod } from '../../decision/http/request-head.js';
import { readTarget } from '../../decision/http/request-target.js';
import { reasons } from '../../decision/denial.js';
import { scopeToken } from '../../decision/token/service-token.js';
import { isVisibleAscii } from '../../lib/text.js';
import { isJsonArray, parseStrictJson, type JsonObject, type JsonValue } from '../../lib/strict-json.js';
import { maxApprovedSubjectLength } from '../../decision/token/principal.js';

/** A request whose caller was verified. */
export interface SeenRequest {
  readonly method: string;
  /** Decoded; a trailing slash is a last, empty one. */
  readonly segments: readonly string[];
  /** Name of the route that took it; `null` where there was none. */
  readonly route: string | null;
  /** Why it would have been refused; `null` where it was allowed. */
  readonly reason: string | null;
  readonly issuer: string;
  readonly subject: string;
  /** What the token grants, sorted; `null` where the line does not say. */
  readonly permissions: readonly string[] | null;
  readonly missing: readonly string[];
  /** Milliseconds since the epoch. */
  readonly timeMs: number;
  /** What the upstream answered. */
  readonly status: number;
}

/** Why nothing can be learnt from a line, in words. */
export const skipWords = {
  other: 'no line of a request: of another program, or of the process itself',
  broken: 'looks like the line of a request, and is none that Sallyport writes',
  long: 'longer than any line of a request',
  unverified: 'nobody verified who called',
  refused: 'was refused, or failed: nothing of it went on in shadow mode',
  session: 'session of a user: users are not listed, write accept: [session] by hand',
  grpc: 'gRPC call: write a route with grpc by hand',
  path: 'path that a route cannot have: in two readings, with an opt-out, or with a secret taken out of it',
  subject: 'subject that a route cannot name',
} as const;

export type SkipReason = keyof typeof skipWords;

type LineReading =
  | { readonly kind: 'request'; readonly request: SeenRequest }
  | { readonly kind: 'skipped'; readonly why: SkipReason; readonly reason?: string };

const maxDepth = 4;
const maxPathBytes = 8 * 1024;
const maxIssuerNameLength = 64;
const maxPermissions = 256;

/** As the log writes it. */
const timeForm = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

/** Name of no route. */
const noRoute = 'none';

const start = Buffer.from('{"level":"');
const decisionMember = Buffer.from(',"decision":"');

const allowed: ReadonlySet<JsonValue | undefined> = new Set(['forwarded', 'replayed']);
const knownReasons: ReadonlySet<JsonValue | undefined> = new Set(reasons);

/**
 * Reads one line. Whatever is not exactly what the log writes is skipped: a member that stands twice, a time or a
 * reason in another form. Only a caller that was verified is believed in.
 */
export function readLine(line: Buffer): LineReading {
  // Most lines of other programs are told from ours without being parsed.
  if (line.indexOf(start) !== 0 || !line.includes(decisionMember)) return skipped('other');
  const parsed = parseStrictJson(line, { maxDepth });
  if (!parsed.ok) return skipped('broken');
  const { method, path, time, status, route, reason, decision } = parsed.value;
  if (
    typeof method !== 'string' ||
    typeof path !== 'string' ||
    typeof route !== 'string' ||
    typeof time !== 'string' ||
    !timeForm.test(time) ||
    typeof status !== 'number' ||
    !(reason === null || knownReasons.has(reason)) ||
    // The log has no queries, and no route where none was found.
    path.includes('?') ||
    (reason === 'route_unknown' && route !== noRoute)
  ) {
    return skipped('broken');
  }
  const timeMs = Date.parse(time);
  if (!Number.isFinite(timeMs)) return skipped('broken');
  if (decision !== 'shadow' && !allowed.has(decision)) return skipped('refused');
  const caller = callerOf(parsed.value);
  if (typeof caller === 'string') return skipped(caller, typeof reason === 'string' ? reason : 'allowed');
  const target = readTarget(path, maxPathBytes);
  if (!target.ok || target.value.encodedSlash || target.value.pathParameters) return skipped('path');
  if (readMethod(method) !== null) return skipped('broken');
  return {
    kind: 'request',
    request: {
      method,
      segments: target.value.segments,
      route: route === noRoute ? null : route,
      reason: decision === 'shadow' && typeof reason === 'string' ? reason : null,
      ...caller,
      permissions: permissionsOf(parsed.value['permissions']),
      missing: permissionsOf(parsed.value['missing_permissions']) ?? [],
      timeMs,
      status,
    },
  };
}

function skipped(why: SkipReason, reason?: string): LineReading {
  return reason === undefined ? { kind: 'skipped', why } : { kind: 'skipped', why, reason };
}

function callerOf(line: JsonObject): Pick<SeenRequest, 'issuer' | 'subject'> | SkipReason {
  const { kind, issuer, subject, grpc_status: grpcStatus } = line;
  if (typeof subject !== 'string' || typeof issuer !== 'string') return 'unverified';
  if (kind === 'session') return 'session';
  if (kind !== 'service') return 'broken';
  if (typeof grpcStatus === 'number') return 'grpc';
  if (!isVisibleAscii(issuer, maxIssuerNameLength)) return 'broken';
  return isVisibleAscii(subject, maxApprovedSubjectLength) ? { issuer, subject } : 'subject';
}

/** Permissions that a route can ask for: others grant nothing. */
function permissionsOf(value: JsonValue | undefined): readonly string[] | null {
  if (!isJsonArray(value) || value.length > maxPermissions) return null;
  return [...new Set(value.filter((one): one is string => typeof one === 'string' && scopeToken.test(one)))].toSorted();
}
