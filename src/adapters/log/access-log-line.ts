import type { RequestLineSettings } from '../../config/types.js';
import { oneLine } from '../../lib/text.js';
import type { Protocol, RequestRecord } from '../../ports/observability.js';
import { grpcCodes } from '../../decision/grpc/status.js';

/** Texts that stand in JSON as they are. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** What a line says of where a request went. */
type Place = Pick<RequestRecord, 'route' | 'method'>;

/** What a line says of how it ended, and for whom. */
type Verdict = Pick<RequestRecord, 'decision' | 'reason' | 'kind' | 'issuer' | 'subject' | 'key_id'>;

/** What a line says of where a request came from. */
type Client = Pick<RequestRecord, 'client_address' | 'user_agent'>;

/** Callers and routes whose part of a line is kept: what others have is made each time. */
const maxKept = 256;

const firstServerError = 500;

/** Enough to tell one program from another. */
const maxUserAgentLength = 256;

/**
 * Makes the members of requests' log lines, each after a comma. Every field is named here, so that nothing else that an
 * object carries is written. `clean` takes out of path and user agent what looks like a secret. The parts that most
 * lines of a route or of a caller share are kept: each piece of a line costs as much as twenty of its characters.
 */
export function createRequestMembers(
  clean: (text: string) => string,
  { clientAddress, userAgent }: RequestLineSettings,
): (record: RequestRecord) => string {
  const places = new Map<string, Place & Kept>();
  const verdicts = new Map<string | null, Verdict & Kept>();
  const clients = new Map<string | null, Client & Kept>();

  function placeOf({ route, method }: RequestRecord): string {
    const last = places.get(route);
    if (last !== undefined && last.method === method) return last.text;
    const text = [',"route":', quoted(route), ',"method":', quoted(method), ',"path":'].join('');
    keep(places, route, { route, method, text });
    return text;
  }

  function verdictOf({ decision, reason, kind, issuer, subject, key_id }: RequestRecord): string {
    const last = verdicts.get(subject);
    if (
      last !== undefined &&
      last.decision === decision &&
      last.reason === reason &&
      last.kind === kind &&
      last.issuer === issuer &&
      last.key_id === key_id
    ) {
      return last.text;
    }
    const text = [
      ',"decision":',
      quoted(decision),
      ',"reason":',
      quoted(reason),
      ',"kind":',
      quoted(kind),
      ',"issuer":',
      quoted(issuer),
      ',"subject":',
      quoted(subject),
      ',"key_id":',
      quoted(key_id),
      ',"status":',
    ].join('');
    keep(verdicts, subject, { decision, reason, kind, issuer, subject, key_id, text });
    return text;
  }

  function clientOf({ client_address, user_agent }: RequestRecord): string {
    const last = clients.get(client_address);
    if (last !== undefined && last.user_agent === user_agent) return last.text;
    const agent = user_agent === null ? null : withoutOdd(clean(user_agent)).slice(0, maxUserAgentLength);
    const text = [
      ...(clientAddress ? [',"client_address":', quoted(client_address)] : []),
      ...(userAgent ? [',"user_agent":', quoted(agent)] : []),
    ].join('');
    // One of the length of a whole head is made each time.
    if (user_agent === null || user_agent.length <= maxUserAgentLength) {
      keep(clients, client_address, { client_address, user_agent, text });
    }
    return text;
  }

  return (record) => {
    const { permissions, missing_permissions: missing, trace_id: traceId, client_certificate: certificate } = record;
    return (
      `,"request_id":${quoted(record.request_id)}${placeOf(record)}${quoted(clean(record.path))}${verdictOf(record)}` +
      `${record.status},"duration_ms":${milliseconds(record.duration_ms)},"upstream_ms":${milliseconds(record.upstream_ms)}` +
      (record.record === null ? ',"record":null,"trace_id":' : `,"record":${quoted(record.record)},"trace_id":`) +
      (traceId === null ? 'null' : `"${traceId}"`) +
      (record.span_id === undefined ? '' : `,"span_id":"${record.span_id}"`) +
      protocolMembers(record) +
      clientOf(record) +
      (certificate === undefined ? '' : `,"client_certificate":${quoted(certificate)}`) +
      (permissions === undefined ? '' : `,"permissions":${listed(permissions)}`) +
      (missing === undefined ? '' : `,"missing_permissions":${listed(missing)}`) +
      attemptMembers(record) +
      askerMember(record)
    );
  };
}

function askerMember({ asked_by: asker }: RequestRecord): string {
  return asker === undefined ? '' : `,"asked_by":${quoted(asker)}`;
}

function attemptMembers({ attempts, not_retried: notRetried = null }: RequestRecord): string {
  return attempts === undefined ? '' : `,"attempts":${String(attempts)},"not_retried":${quoted(notRetried)}`;
}

/** Every pair of protocol and gRPC status, by both: there are few. */
const protocolTexts: Readonly<Record<Protocol, ProtocolTexts>> = {
  'HTTP/1.1': protocolTextsOf('HTTP/1.1'),
  'HTTP/1.0': protocolTextsOf('HTTP/1.0'),
  'HTTP/2': protocolTextsOf('HTTP/2'),
};

interface ProtocolTexts {
  readonly none: string;
  readonly byStatus: readonly string[];
}

function protocolTextsOf(protocol: Protocol): ProtocolTexts {
  const start = `,"protocol":"${protocol}","grpc_status":`;
  return { none: `${start}null`, byStatus: grpcCodes.map((_, status) => `${start}${String(status)}`) };
}

function protocolMembers({ protocol, grpc_status: status }: RequestRecord): string {
  const { none, byStatus } = protocolTexts[protocol];
  return status === null ? none : (byStatus[status] ?? none);
}

/**
 * How much a request's end is worth an operator's look: `error` for a bug of ours, `warn` for what failed and for a
 * service that answers 5xx, `info` for all else. A refusal is the caller's trouble.
 */
export function levelOf({ decision, reason, status }: RequestRecord): 'info' | 'warn' | 'error' {
  if (reason === 'internal') return 'error';
  return decision === 'failed' || status >= firstServerError ? 'warn' : 'info';
}

/** A part of a line, made in one piece. */
interface Kept {
  readonly text: string;
}

function keep<K, V>(kept: Map<K, V>, key: K, value: V): void {
  if (kept.size >= maxKept) kept.clear();
  kept.set(key, value);
}

function quoted(text: string | null): string {
  if (text === null) return 'null';
  return plain.test(text) ? `"${text}"` : oneLine(JSON.stringify(text));
}

/** What follows the whole milliseconds, for each number of microseconds. */
const decimals = Array.from({ length: 1000 }, (_, us) => String(us / 1000).slice(1));

/**
 * A number of whole microseconds, in milliseconds. Writing a fraction as a number takes five times as long as looking
 * it up.
 */
function milliseconds(value: number | null): string {
  if (value === null || !(value >= 0 && value < Infinity)) return 'null';
  const us = Math.round(value * 1000);
  const rest = us % 1000;
  return `${(us - rest) / 1000}${decimals[rest] ?? ''}`;
}

/** Visible ASCII and blanks: more than that no user agent needs, and some of it hides or forges text. */
function withoutOdd(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?');
}

function listed(texts: readonly string[] | null): string {
  return oneLine(JSON.stringify(texts));
}
