import { oneLine } from '../decision/one-line.js';
import type { RequestRecord } from '../ports.js';

/** Texts that stand in JSON as they are. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/**
 * The members of a request's log line, each after a comma. Every field is named here, so that nothing else that an object
 * carries is written. `clean` takes out of the path what looks like a secret.
 */
export function requestMembers(record: RequestRecord, clean: (text: string) => string): string {
  const { permissions, missing_permissions: missing } = record;
  return `,"request_id":${quoted(record.request_id)},"route":${quoted(record.route)},"method":${quoted(record.method)}`
    + `,"path":${quoted(clean(record.path))},"decision":"${record.decision}","reason":${quoted(record.reason)}`
    + `,"kind":${quoted(record.kind)},"issuer":${quoted(record.issuer)},"subject":${quoted(record.subject)}`
    + `,"key_id":${quoted(record.key_id)},"status":${record.status},"duration_ms":${milliseconds(record.duration_ms)}`
    + `,"upstream_ms":${milliseconds(record.upstream_ms)},"record":${quoted(record.record)}`
    + (permissions === undefined ? '' : `,"permissions":${listed(permissions)},"missing_permissions":${listed(missing ?? null)}`);
}

function quoted(text: string | null): string {
  if (text === null) return 'null';
  return plain.test(text) ? `"${text}"` : oneLine(JSON.stringify(text));
}

/** What follows the whole milliseconds, for each number of microseconds. */
const decimals = Array.from({ length: 1000 }, (_, us) => String(us / 1000).slice(1));

/** A number of whole microseconds, in milliseconds. Writing a fraction as a number takes five times as long as looking it up. */
function milliseconds(value: number | null): string {
  if (value === null || !(value >= 0 && value < Infinity)) return 'null';
  const us = Math.round(value * 1000);
  const rest = us % 1000;
  return `${(us - rest) / 1000}${decimals[rest] ?? ''}`;
}

function listed(texts: readonly string[] | null): string {
  return oneLine(JSON.stringify(texts));
}
