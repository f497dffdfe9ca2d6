/** Decisions as spans: one of the kind SERVER for each, whoever asks and in whichever way. */
import t from 'tap';
import { startCollector } from '../support/otlp-collector.js';
import { request } from '../support/raw-client.js';
import { checkClient, checkRequest, described } from './check-client.js';
import { startDeciding } from './deciding.js';

const serverKind = 2;
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;

t.test('what a proxy asks about is one span of the request that it describes', async (t) => {
  const collector = await startCollector(t);
  const telemetry = { otlp: { endpoint: collector.url }, traces: { ratio: 1 } };
  const { proxy, decidePort } = await startDeciding(t, 'envoy', { telemetry });
  const headers = { Authorization: `Bearer ${proxy.token()}`, traceparent };
  t.equal((await request(decidePort, { path: '/orders', headers })).status, 200);
  const check = checkClient(t, decidePort);
  const { response } = await check(checkRequest(described({ path: '/orders', headers })));
  t.ok(response?.okResponse);
  t.notMatch(JSON.stringify(response), /traceparent/, 'the proxy goes on with its own');
  t.ok((await check(checkRequest(described({ path: '/orders' })))).response?.deniedResponse);
  t.not((await check(Buffer.from('no message'))).code, 0);
  await proxy.app.stop();
  const spans = collector.spans();
  t.same(
    spans.map(({ kind, name, attributes }) => [
      kind,
      name,
      attributes['http.response.status_code'],
      attributes['sallyport.decision'],
      attributes['sallyport.reason'],
    ]),
    [
      [serverKind, 'GET /orders', 200, 'forwarded', undefined],
      [serverKind, 'GET /orders', 200, 'forwarded', undefined],
      [serverKind, 'GET /orders', 401, 'denied', 'credential_missing'],
    ],
  );
  t.same(
    spans.map((span) => span.traceId === traceId),
    [true, true, false],
  );
  const logged = proxy.logs().filter(({ asked_by: form }) => form === 'envoy');
  t.same(
    logged.slice(0, 3).map(({ span_id: id }) => id),
    spans.map(({ spanId }) => spanId),
  );
});
