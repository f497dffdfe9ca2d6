/**
 * Has receivers send heads without end on one connection after the other, and collects what is left of each. Exits with
 * 0 where the process survives that.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createConnector } from '../../../../src/proxy/upstream/connector.js';
import { createHttp2Upstream } from '../../../../src/proxy/upstream/http2/pool.js';
import type { Scope } from '../../../support/scope.js';
import { settingsOf } from '../upstream-harness.js';
import { fieldBlock, frameOf, frameType, startFrameUpstream } from './frame-upstream.js';

const { gc } = globalThis;
if (gc === undefined) throw new Error('started without --expose-gc');

const scope: Scope = { teardown: () => undefined };

/** What nghttp2 takes for a flood, in two reads. */
const receiver = await startFrameUpstream(scope, (id, peer) => {
  peer.send(
    frameOf(frameType.headers, 0, id, fieldBlock([[':status', '200']])),
    ...Array.from({ length: 5_000 }, (_, i) =>
      frameOf(frameType.continuation, 0, id, fieldBlock([[`x-${String(i)}`, 'a']])),
    ),
  );
});

for (let round = 0; round < 60; round += 1) {
  const settings = settingsOf(receiver.url, { http2: true });
  const upstream = createHttp2Upstream(settings, createConnector(settings, null));
  await new Promise<void>((resolve) => {
    upstream.send(
      { holder: 'a', method: 'GET', target: '/', headers: ['Host', 'a'], body: null, responseTimeoutMs: 20_000 },
      { onHead: () => undefined, onData: () => true, onEnd: () => resolve(), onError: () => resolve() },
    );
  });
  void upstream.close();
  await delay(5);
  gc();
}
process.stdout.write('it lives');
process.exit(0);
