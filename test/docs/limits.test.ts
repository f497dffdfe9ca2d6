import t from 'tap';
import { validateConfig } from '../../src/config/load/validate-config.js';
import { staleAllowanceMs } from '../../src/decision/http/http-freshness.js';
import { refuse } from '../../src/lib/result.js';
import { blockThatBegins } from './fenced-blocks.js';
import { tableBelow } from './pages.js';

t.test('docs/limits.md names the defaults of the config', async (t) => {
  const shown = blockThatBegins('README.md', 'listen:').text;
  const { config } = validateConfig(shown, {
    file: 'sallyport.yaml',
    folder: '/',
    env: {},
    readFile: () => refuse('is not read here'),
  });
  if (config === null) throw new Error('the config has an error');
  const {
    listen,
    upstream,
    issuers: [issuer],
    shutdown,
    routes: [route],
  } = config;
  if (issuer === undefined || route === undefined) throw new Error('the config has no issuer or no route');
  const { rules, keys } = issuer;
  const kib = (bytes: number): string => (bytes >= 1024 * 1024 ? `${bytes / 1024 / 1024} MiB` : `${bytes / 1024} KiB`);
  const s = (ms: number): string =>
    ms >= 3_600_000 ? `${ms / 3_600_000} h` : ms >= 600_000 ? `${ms / 60_000} min` : `${ms / 1000} s`;
  const reservation = config.routes.find((candidate) => candidate.reservation !== null)?.reservation ?? null;
  if (config.store?.kind !== 'redis' || reservation === null) {
    throw new Error('the config has no route that could reserve');
  }
  const expected = [
    ['header section, target', `${kib(listen.maxHeaderBytes)}, ${kib(listen.maxTargetBytes)}`],
    [
      'time for the header section; pause within a body; connection without a request',
      `${s(listen.headerTimeoutMs)}; ${s(listen.bodyIdleTimeoutMs)}; ${s(listen.keepAliveTimeoutMs)}`,
    ],
    ['body of a request, by route', kib(route.maxBodyBytes)],
    ['requests in flight', String(listen.maxInFlight)],
    ['WebSocket connections; silence on one', `${listen.maxWebSockets}; ${listen.webSocketIdleTimeoutMs / 60_000} min`],
    [
      'connecting to the upstream; its response head; pause within its answer',
      `${s(upstream.connectTimeoutMs)}; ${s(route.responseTimeoutMs)}; ${s(upstream.idleTimeoutMs)}`,
    ],
    ['connections to the upstream', String(upstream.maxConnections)],
    ['clock skew; longest token life', `${rules.clockSkewS} s; ${rules.maxLifetimeS / 3600} h`],
    ['memory for verified tokens that come again', `${(config.tokenCacheBytes ?? 0) / 1024 ** 2} MiB`],
    ['key ids accepted', `\`${rules.keyIds.accept.join(' ')}\`: dynamic keys only`],
    [
      'keys: lifetime from `Cache-Control`, within; served while the issuer is away; refetch for an unknown `kid`',
      `${s(keys.minAgeMs)} to ${s(keys.maxAgeMs)}; ${s(staleAllowanceMs(keys.maxStaleMs, true))} more under ` +
        `\`must-revalidate\`, else ${s(staleAllowanceMs(keys.maxStaleMs, false))}; ` +
        `once per ${s(keys.cooldownMs)}`,
    ],
    ['keys: time for a fetch, size of the answer', `${s(keys.timeoutMs)}, ${kib(keys.maxBytes)}`],
    [
      'a key and its result; a result that is kept; a reserved request',
      `${s(reservation.retentionMs)}; ${kib(reservation.maxStoredResponseBytes)}; ${kib(reservation.maxBodyBytes)}`,
    ],
    ['statuses that free a key', [...reservation.releaseOn].join(' ')],
    ['Redis: a reservation; a settlement', `${config.store.reserveTimeoutMs} ms; ${s(config.store.settleTimeoutMs)}`],
    ['shutdown: wait for load balancers; for requests in flight', `${s(shutdown.delayMs)}; ${s(shutdown.graceMs)}`],
  ];
  t.same(tableBelow('docs/limits.md', '## Defaults'), expected);
});
