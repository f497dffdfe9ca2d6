import { isLoopback } from '../../lib/ip-ranges.js';
import { lookAlikeKey } from '../../decision/http/field-name.js';
import { mayPass, mayStrip } from '../../decision/http/header-rules.js';
import { isWildcard, readUrl } from './addresses.js';
import type { ConfigParts } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import type { UpstreamFile } from './upstream-schema.js';
import type { Path } from '../load/source-tree.js';

/** Checks what the upstream's settings say together. */
export function checkUpstream(parts: ConfigParts, report: Report): void {
  if (parts.upstream === null) return;
  const { value: upstream } = parts.upstream;
  const { url, ca_file: caFile, server_name: serverName } = upstream;
  if (!url.startsWith('https:')) {
    if (caFile !== null) {
      report.error(['upstream', 'ca_file'], 'upstream.ca_file has no use without https', 'an https upstream.url');
    }
    if (serverName !== null) {
      report.error(
        ['upstream', 'server_name'],
        'upstream.server_name has no use without https',
        'an https upstream.url',
      );
    }
  }
  const host = url.startsWith('http:') ? readUrl(url)?.hostname : undefined;
  if (host !== undefined && !isLoopback(host) && !isWildcard(host)) {
    report.warning(
      ['upstream', 'url'],
      'requests and identities cross the network in plaintext: upstream.url is http on another host',
      'https, a loopback address or unix:/PATH',
    );
  }
  checkStripped(upstream, parts, report);
  checkPassed(upstream, parts, report);
}

/** Checks that nothing is removed that is needed: here, for the body, or to tell two writes apart. */
function checkStripped({ strip_fields: names }: UpstreamFile, { routes }: ConfigParts, report: Report): void {
  const refuse = (path: Path, why: string, allowed: string): void =>
    report.error(path, `${nameOf(path)} is ${report.show(path)}, ${why}`, allowed);
  names.forEach((name, index) => {
    if (mayStrip(name)) return;
    refuse(
      ['upstream', 'strip_fields', index],
      'which Sallyport reads or sets, or which a body needs',
      'another field, such as X-User',
    );
  });
  const stripped = new Set(names.map(lookAlikeKey));
  for (const { path, part } of routes) {
    part?.value.idempotency?.fields.forEach((name, index) => {
      if (!stripped.has(lookAlikeKey(name))) return;
      refuse(
        [...path, 'idempotency', 'fields', index],
        'which upstream.strip_fields removes',
        'a field that is passed on',
      );
    });
  }
}

/**
 * Checks that nothing goes on that only Sallyport says, and nothing that would have another request carried out than
 * was judged.
 */
function checkPassed(
  { strip_fields: stripFields, pass_fields: names }: UpstreamFile,
  { identity }: ConfigParts,
  report: Report,
): void {
  const stripped = new Set(stripFields.map(lookAlikeKey));
  const headers =
    identity === null ? [] : [...Object.values(identity.value.headers), identity.value.assertion?.header ?? null];
  const own = new Set(headers.map((name) => lookAlikeKey(name ?? '')));
  names.forEach((name, index) => {
    const path = ['upstream', 'pass_fields', index];
    const refuse = (why: string): void =>
      report.error(
        path,
        `${nameOf(path)} is ${report.show(path)}, ${why}`,
        'a field that a proxy in front sets, such as CF-IPCountry, or Destination',
      );
    if (own.has(lookAlikeKey(name))) refuse('which is an identity header');
    else if (stripped.has(lookAlikeKey(name))) refuse('which upstream.strip_fields removes');
    else if (!mayPass(name)) refuse('which is not removed, or never passed on');
  });
}
