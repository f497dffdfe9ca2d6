import type { HeaderRules } from '../../decision/http/header-rules.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import { readHeaders } from '../../decision/http/request-headers.js';
import type { Explained } from './explanation.js';
import type { Ruling } from '../simulate/decide.js';

/** Values that are nobody's business on a screen. */
export const secretHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'st-access-token',
  'st-refresh-token',
  'anti-csrf',
]);

/** Says which headers of the caller are not passed on. */
export function explainHeaders({ rawHeaders }: RequestHead, rules: HeaderRules): readonly string[] {
  const names = rawHeaders.filter((_, index) => index % 2 === 0);
  const of = (...kinds: readonly string[]): readonly string[] =>
    names.filter((name) => kinds.includes(rules.requestKind(name)));
  const line = (text: string, found: readonly string[]): readonly string[] =>
    found.length === 0 ? [] : [`${text}: ${found.join(', ')}`];
  const reserved = of('reserved');
  const isListed = (name: string): boolean => rules.strippedKind(name) === 'listed';
  return [
    ...line(
      'dropped, since only Sallyport says or judges such',
      reserved.filter((name) => !isListed(name)),
    ),
    ...line('dropped by upstream.strip_fields', reserved.filter(isListed)),
    ...line('dropped for the underscore', of('underscored')),
    ...line('refused for the underscore', of('refused')),
    ...line('malformed', of('malformed')),
    ...line('for this connection only', of('hop-by-hop')),
  ];
}

/** What the upstream would get, by lower-case name; `null` where it is not asked. */
export function headersReceived({ forwarded, preparation }: Ruling): ReadonlyMap<string, string> | null {
  if (forwarded === null) return null;
  const received = new Map<string, string>();
  for (let at = 0; at < forwarded.length; at += 2) {
    const name = (forwarded[at] ?? '').toLowerCase();
    const earlier = received.get(name);
    received.set(name, `${earlier === undefined ? '' : `${earlier}, `}${forwarded[at + 1] ?? ''}`);
  }
  const id = preparation?.reservationId ?? null;
  if (id !== null) received.set('idempotency-record', id);
  return received;
}

/** What the upstream would see, as names and values, without what is secret or new each time. */
export function headersSeen({
  head,
  activeConfig,
  ruling: { forwarded, preparation, principal, decision, listener },
}: Explained): readonly (readonly [string, string])[] | null {
  if (forwarded === null) return null;
  const read = readHeaders(head, activeConfig.headerRules);
  const isNew = (name: string): boolean =>
    read.ok &&
    ((name === 'X-Request-Id' && read.value.requestId === null) ||
      (name === 'traceparent' && read.value.traceparent === null));
  const seen: [string, string][] = [];
  for (let at = 0; at < forwarded.length; at += 2) {
    const name = forwarded[at] ?? '';
    seen.push([
      name,
      isNew(name) ? '(a new one)' : secretHeaders.has(name.toLowerCase()) ? '(as it came)' : (forwarded[at + 1] ?? ''),
    ]);
  }
  const { assertion } = activeConfig.config;
  const isGiven = listener === null || listener.settings.accepts.has('assertion');
  if (assertion !== null && isGiven && principal !== null && decision !== 'shadow') {
    seen.push([assertion.header, '(signed when it goes out)']);
  }
  const id = preparation?.reservationId ?? null;
  return id === null ? seen : [...seen, ['Idempotency-Record', id], ['Idempotency-Fence', '(a number of the store)']];
}
