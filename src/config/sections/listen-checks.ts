import { isLoopback } from '../../lib/ip-ranges.js';
import type { ConfigParts } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import { isWildcard, readUrl } from './addresses.js';
import type { HostPortFile } from './listen.js';
import type { Path } from '../load/source-tree.js';

/** Checks what the listeners' settings say together. */
export function checkListeners(parts: ConfigParts, report: Report): void {
  checkCallersListener(parts, report);
  checkPorts(parts, report);
  if (parts.admin !== null && !isLoopback(parts.admin.value.host)) {
    const path = parts.isWritten(['admin', 'host']) ? ['admin', 'host'] : ['admin'];
    report.warning(
      path,
      `the operators’ listener can be reached from other machines: admin.host is ${report.show(path)}`,
      'a loopback address',
    );
  }
}

function checkCallersListener({ listen, isWritten, written }: ConfigParts, report: Report): void {
  const has = (key: string): boolean => isWritten(['listen', key]) && written(['listen', key]) !== null;
  if (has('tls') && has('tls_terminated_by')) {
    report.keyError(
      ['listen', 'tls_terminated_by'],
      'listen.tls_terminated_by stands beside listen.tls',
      'one of them',
    );
  }
  if (
    has('tls') &&
    isWritten(['listen', 'tls', 'client_auth']) &&
    (written(['listen', 'tls', 'client_ca_file']) ?? null) === null
  ) {
    report.keyError(
      ['listen', 'tls', 'client_auth'],
      'listen.tls.client_auth has no use without listen.tls.client_ca_file',
      'listen.tls.client_ca_file beside it',
    );
  }
  const at = ['listen', 'host'];
  const host = written(at);
  if (!has('tls') && !has('tls_terminated_by') && typeof host === 'string' && !isLoopback(host)) {
    report.error(
      at,
      `tokens would cross the network in plaintext: listen.host is ${report.show(at)}, without TLS`,
      'listen.tls, listen.tls_terminated_by naming who ends TLS in front, or a loopback address',
    );
  }
  if (listen !== null && listen.value.max_target > listen.value.max_header_bytes) {
    const path = ['listen', 'max_target'];
    report.error(
      path,
      'listen.max_target is more than listen.max_header_bytes, which counts the target too',
      'at most listen.max_header_bytes',
    );
  }
}

/** One port for two listeners would fail at start, or serve `/metrics` to callers. */
function checkPorts({ listen, admin, probes, upstream }: ConfigParts, report: Report): void {
  const listeners: readonly { readonly path: Path; readonly at: HostPortFile | null; readonly job: string }[] = [
    { path: ['listen', 'port'], at: listen?.value ?? null, job: 'itself listens' },
    { path: ['admin', 'port'], at: admin?.value ?? null, job: 'listens for operators' },
    { path: ['probes', 'port'], at: probes?.value ?? null, job: 'listens for probes' },
  ];
  listeners.forEach(({ path, at }, index) => {
    const other = listeners
      .slice(0, index)
      .find((before) => at !== null && before.at !== null && collide(at, before.at));
    if (other !== undefined) {
      report.error(path, `${path.join('.')} is also ${other.path.join('.')}, on the same address`, 'a port of its own');
    }
  });
  const target = upstream === null ? null : addressOf(upstream.value.url);
  const own =
    target === null || !isThisMachine(target.host)
      ? undefined
      : listeners.find(({ at }) => at !== null && collide(target, at));
  if (own !== undefined) {
    report.error(
      ['upstream', 'url'],
      `upstream.url is where Sallyport ${own.job}`,
      'the address of the service behind it',
    );
  }
}

function collide(a: HostPortFile, b: HostPortFile): boolean {
  if (a.port !== b.port || a.port === 0) return false;
  if (a.host.toLowerCase() === b.host.toLowerCase() || isWildcard(a.host) || isWildcard(b.host)) return true;
  return [a.host, b.host].includes('localhost') && isLoopback(a.host) && isLoopback(b.host);
}

function isThisMachine(host: string): boolean {
  return isLoopback(host) || isWildcard(host);
}

function addressOf(origin: string): HostPortFile | null {
  const url = readUrl(origin);
  if (url === null || !url.protocol.startsWith('http')) return null;
  const standardPort = url.protocol === 'https:' ? 443 : 80;
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: url.port === '' ? standardPort : Number(url.port) };
}
