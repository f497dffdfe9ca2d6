import type { ConfigParts } from './parse.js';
import type { Report } from './report.js';
import { isLoopback, isWildcard, readUrl } from './addresses.js';

/** Checks what the receiving service's settings say together. */
export function checkUpstream({ upstream }: ConfigParts, report: Report): void {
  if (upstream === null) return;
  const { url, ca_file: caFile, server_name: serverName } = upstream.value;
  if (!url.startsWith('https:')) {
    if (caFile !== null) report.error(['upstream', 'ca_file'], 'upstream.ca_file has no use without https', 'an https upstream.url');
    if (serverName !== null) report.error(['upstream', 'server_name'], 'upstream.server_name has no use without https', 'an https upstream.url');
  }
  const host = url.startsWith('http:') ? readUrl(url)?.hostname : undefined;
  if (host !== undefined && !isLoopback(host) && !isWildcard(host)) {
    report.warning(['upstream', 'url'], 'requests and identities cross the network in plaintext: upstream.url is http on another host',
      'https, a loopback address or unix:/PATH');
  }
}
