import t from 'tap';
import { nothingStripped } from '../../src/decision/http/stripped-headers.js';
import type { Metrics } from '../../src/ports/observability.js';
import { countMetrics } from '../../src/admin/counters.js';

t.test('what is counted reaches the metrics as well', (t) => {
  const calls: unknown[][] = [];
  const note =
    (name: string) =>
    (...values: unknown[]): void => {
      calls.push([name, ...values]);
    };
  const metrics: Metrics = {
    request: note('request'),
    decided: note('decided'),
    denial: note('denial'),
    failure: note('failure'),
    shadowDenial: note('shadow'),
    grpcCall: note('grpc'),
    strippedHeaders: note('stripped'),
    jwksRefresh: note('jwks'),
    discoveryRefresh: note('discovery'),
    jwksWait: note('wait'),
    introspection: note('introspection'),
    introspectionLookup: note('lookup'),
    configReload: note('reload'),
    webSocketClosed: note('websocket'),
    connectionEnded: note('connection'),
  };
  const counted = countMetrics(metrics);
  const exemplar = { traceId: 't', spanId: 's', atMs: 1 };
  counted.request('a', 'forwarded', 200, 2, 1, exemplar);
  counted.request('none', 'denied', 403, 2, 1);
  counted.denial('a', 'token_expired');
  counted.denial('b', 'token_expired');
  counted.failure('a', 'internal');
  counted.shadowDenial('a', 'credential_missing');
  counted.grpcCall('a', 0);
  counted.grpcCall('b', 16);
  counted.grpcCall('a', 16);
  counted.connectionEnded('http2_abuse');
  counted.strippedHeaders(nothingStripped);
  counted.strippedHeaders({ identity: 1, forwarded: 2 });
  counted.jwksRefresh('core', 'ok');
  counted.discoveryRefresh('core', 'refused');
  counted.jwksWait('core', 'found');
  counted.configReload('failed');
  counted.webSocketClosed('idle');
  t.same(calls, [
    ['request', 'a', 'forwarded', 200, 2, 1, exemplar],
    ['request', 'none', 'denied', 403, 2, 1, undefined],
    ['denial', 'a', 'token_expired'],
    ['denial', 'b', 'token_expired'],
    ['failure', 'a', 'internal'],
    ['shadow', 'a', 'credential_missing'],
    ['grpc', 'a', 0],
    ['grpc', 'b', 16],
    ['grpc', 'a', 16],
    ['connection', 'http2_abuse'],
    ['stripped', { identity: 1, forwarded: 2 }],
    ['jwks', 'core', 'ok'],
    ['discovery', 'core', 'refused'],
    ['wait', 'core', 'found'],
    ['reload', 'failed'],
    ['websocket', 'idle'],
  ]);
  t.same(counted.counts(), {
    requests: { forwarded: 1, replayed: 0, denied: 1, failed: 0, shadow: 0 },
    denials: { token_expired: 2 },
    failures: { internal: 1 },
    shadow_denials: { credential_missing: 1 },
    grpc_calls: { 0: 1, 16: 2 },
    connections_ended: { gave_way: 0, refused: 0, too_much_waiting: 0, http2_abuse: 1, key_updates: 0 },
    stripped_fields: 3,
    config_reloads: { ok: 0, failed: 1 },
  });
  t.end();
});
