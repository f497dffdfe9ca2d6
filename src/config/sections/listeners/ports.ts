/** Where Sallyport itself listens: no two listeners share a port, and none is the upstream. */
import type { ParsedConfig } from '../../load/parse-sections.js';
import type { Report } from '../../load/report.js';
import type { Path } from '../../load/source-tree.js';
import { isWildcard, readUrl } from '../../schema/addresses.js';
import { isLoopback } from '../../../lib/ip-ranges.js';
import type { HostPortFile } from './admin.js';

/** A listener, and what it is for. */
interface OwnListener {
  readonly path: Path;
  readonly at: HostPortFile;
  readonly job: string;
}

/** Where each listener is; `null` where there is none. */
interface ListenerPlaces {
  readonly listen: HostPortFile | null;
  readonly admin: HostPortFile | null;
  readonly probes: HostPortFile | null;
  /** `null` on a Unix socket, too. */
  readonly egress: HostPortFile | null;
  readonly decide: readonly HostPortFile[];
}

function listenersOf({ listen, admin, probes, egress }: Omit<ListenerPlaces, 'decide'>): readonly OwnListener[] {
  const all: readonly (Omit<OwnListener, 'at'> & { readonly at: HostPortFile | null })[] = [
    { path: ['listen', 'port'], at: listen, job: 'itself listens' },
    { path: ['admin', 'port'], at: admin, job: 'listens for operators' },
    { path: ['probes', 'port'], at: probes, job: 'listens for probes' },
    { path: ['egress', 'listen', 'port'], at: egress, job: 'listens for the workload' },
  ];
  return all.flatMap(({ at, ...listener }) => (at === null ? [] : [{ ...listener, at }]));
}

/** What Sallyport does where a URL leads, as `itself listens`; `null` where it is not there. */
function ownJobAt(url: string, places: ListenerPlaces): string | null {
  const target = addressOf(url);
  if (target === null || !isThisMachine(target.host)) return null;
  const own = listenersOf(places).find(({ at }) => collide(target, at));
  if (own !== undefined) return own.job;
  return places.decide.some((at) => collide(target, at)) ? 'listens for proxies that ask' : null;
}

type DecideFile = NonNullable<ParsedConfig['decide']>['value'];

/** The listeners for proxies that ask, of a file that has one, a list of them or none. */
export function decideListeners(file: DecideFile): readonly Extract<DecideFile, HostPortFile>[] {
  if (file === null) return [];
  return 'form' in file ? [file] : file;
}

/** Where the calling side listens, of a file; `null` where that is no port. */
export function egressPlace({ egress }: Pick<ParsedConfig, 'egress'>): HostPortFile | null {
  const listen = egress?.value?.listen ?? null;
  return listen === null || listen.unix !== null ? null : listen;
}

/** One port for two listeners would fail at start, or serve `/metrics` to callers. `decide` checks its own ports. */
export function checkPorts(parts: ParsedConfig, report: Report): void {
  const places = {
    listen: parts.listen?.value ?? null,
    admin: parts.admin?.value ?? null,
    probes: parts.probes?.value ?? null,
    egress: egressPlace(parts),
    decide: decideListeners(parts.decide?.value ?? null),
  };
  const listeners = listenersOf(places);
  listeners.forEach(({ path, at }, index) => {
    const other = listeners.slice(0, index).find((before) => collide(at, before.at));
    if (other !== undefined) {
      report.error(path, `${path.join('.')} is also ${other.path.join('.')}, on the same address`, 'a port of its own');
    }
  });
  const job = parts.upstream === null ? null : ownJobAt(parts.upstream.value.url, places);
  if (job !== null) {
    report.error(['upstream', 'url'], `upstream.url is where Sallyport ${job}`, 'the address of the service behind it');
  }
}

/** Whether two listeners would want the same port of the same address. */
export function collide(a: HostPortFile, b: HostPortFile): boolean {
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
