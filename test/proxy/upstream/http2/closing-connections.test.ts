/** Connections that take no new requests, while some are under way on them. */
import { createServer, type ServerHttp2Session } from 'node:http2';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createConnector } from '../../../../src/proxy/upstream/connector.js';
import { createHttp2Upstream } from '../../../../src/proxy/upstream/http2/pool.js';
import type { Upstream } from '../../../../src/proxy/upstream/pool/pool.js';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import { ask, settingsOf } from '../upstream-harness.js';
import { code, goaway, startFrameUpstream } from './frame-upstream.js';

interface Served {
  readonly upstream: Upstream;
  readonly sessions: ServerHttp2Session[];
  /** Ends the responses that are under way. */
  readonly endSlow: () => void;
  readonly slow: () => number;
}

function startPool(t: Test, url: string): Upstream {
  const settings = settingsOf(url, { http2: true, maxConnections: 2, maxStreams: 50 });
  const times = { quietMs: 50, pingMs: 150, idleMs: 100_000 };
  const upstream = createHttp2Upstream(settings, createConnector(settings, null), times);
  t.teardown(upstream.close);
  return upstream;
}

/** Its responses of /slow end when they are told to. */
async function serve(t: Test): Promise<Served> {
  const sessions: ServerHttp2Session[] = [];
  const slow: (() => void)[] = [];
  // Sections as long as we send them, which Node would otherwise refuse before.
  const server = createServer({ settings: { maxHeaderListSize: 1_000_000 }, maxHeaderListPairs: 10_000 });
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200 });
    const end = (): void => {
      if (!stream.destroyed) stream.end(`on ${String(sessions.indexOf(stream.session as ServerHttp2Session))}`);
    };
    if (headers[':path'] === '/slow') slow.push(end);
    else end();
  });
  const { port } = await listen(t, server);
  return {
    upstream: startPool(t, `http://127.0.0.1:${String(port)}`),
    sessions,
    endSlow: () => {
      for (const end of slow.splice(0)) end();
    },
    slow: () => slow.length,
  };
}

t.test('a connection that said farewell is asked whether it is there, and what is silent on it goes on', async (t) => {
  const { upstream, sessions, slow, endSlow } = await serve(t);
  t.equal(await ask(upstream), 'on 0');
  const answer = ask(upstream, { target: '/slow' });
  await until('it is under way', () => slow() === 1);
  sessions[0]?.close();
  // Longer than it takes to find a connection dead.
  await delay(600);
  t.equal(await ask(upstream), 'on 1', 'others go elsewhere');
  endSlow();
  t.equal(await answer, 'on 0');
});

t.test('where nobody is there any more, it is given up', async (t) => {
  const server = await startFrameUpstream(t, (id, peer) => peer.send(goaway(id, code.noError)), {
    ignoresPings: true,
  });
  const upstream = startPool(t, server.url);
  t.equal(await ask(upstream), 'upstream_failed');
  t.same(upstream.counts(), { active: 0, waiting: 0 });
});

/** Header lines of so many bytes each. */
const lines = (count: number, bytes: number): string[] =>
  Array.from({ length: count }, (_, i) => [`x-${String(i).padStart(4, '0')}`, 'a'.repeat(bytes - 6)]).flat();

t.test('a head that is too long for HTTP/2 is refused before anything is sent, and costs no connection', async (t) => {
  const { upstream, sessions, slow, endSlow } = await serve(t);
  const answers = [1, 2, 3].map(() => ask(upstream, { target: '/slow' }));
  await until('they are under way', () => slow() === 3);
  for (let i = 0; i < 10; i += 1) {
    t.equal(await ask(upstream, { headers: ['Host', 'a', ...lines(1, 66_000)] }), 'header_too_large_for_http2');
  }
  t.equal(await ask(upstream), 'on 0');
  endSlow();
  t.same(await Promise.all(answers), ['on 0', 'on 0', 'on 0']);
  t.equal(sessions.length, 1);
  t.same(upstream.counts(), { active: 0, waiting: 0 });
});

t.test('trailers of a request go out, or the request is broken off: none has Node close the connection', async (t) => {
  const { upstream, sessions } = await serve(t);
  for (const bytes of [100, 65_500, 65_530, 65_531, 65_532, 65_536, 65_537, 70_000]) {
    const trailers = (): readonly string[] => ['x-a', 'b'.repeat(bytes - 32)];
    const body = Object.assign(Readable.from([Buffer.from('x')]), { trailers });
    await ask(upstream, { method: 'POST', body });
    t.equal(await ask(upstream), 'on 0', `${String(bytes)} bytes`);
  }
  t.equal(sessions.length, 1);
});

t.test('whatever its lines are, a head goes out or is refused: none has Node close the connection', async (t) => {
  const { upstream, sessions } = await serve(t);
  for (const count of [1, 10, 200, 1_000]) {
    const refused: boolean[] = [];
    for (let total = 65_000; total <= 66_000; total += 20) {
      const bytes = Math.floor(total / count) - 12;
      const answer = await ask(upstream, { headers: ['Host', 'a', ...lines(count, bytes)] });
      if (answer !== 'header_too_large_for_http2') {
        t.equal(answer, 'on 0', `${String(count)} lines, ${String(total)} bytes`);
      }
      refused.push(answer === 'header_too_large_for_http2');
    }
    t.same([refused[0], refused.at(-1)], [false, true], `${String(count)} lines: the limit is in between`);
  }
  t.equal(sessions.length, 1);
});
