import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import t from 'tap';
import { listen } from '../../support/listening.js';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { down, gate } from './faulty-store.js';
import { recordOf, startScene, writeOf, type Scene } from './scene.js';

/** A scene whose receiver answers when it is told to. */
async function startHeld(
  t: Parameters<typeof startScene>[0],
  settleTimeoutMs = 100,
): Promise<{ readonly scene: Scene; readonly answers: ServerResponse[] }> {
  const scene = await startScene(t, { settleTimeoutMs });
  const answers: ServerResponse[] = [];
  scene.receiver.behave((req, res) => {
    req.resume().on('end', () => answers.push(res));
  });
  return { scene, answers };
}

t.test('a drain lets writes finish, with and without their caller', async (t) => {
  const { scene, answers } = await startHeld(t);
  const staying = scene.write({ key: 'staying' });
  const leaving = await connectRaw(scene.port);
  leaving.write(requestBytes(scene.port, writeOf(scene, { key: 'leaving' })));
  await until('both to be under way', () => answers.length === 2);
  leaving.end();
  await until('its record', () => scene.records.length === 1);
  const drained = scene.server.drain(20_000);
  for (const answer of answers) answer.end('done');
  t.equal((await staying).text, 'done');
  await drained;
  t.same(scene.results, ['acquired', 'acquired', 'completed', 'completed']);
  t.equal(scene.server.counts().inFlight, 0);
});

t.test('at its end what has no answer is in doubt, not free, and the caller is told so', async (t) => {
  const { scene, answers } = await startHeld(t);
  const staying = scene.write({ key: 'staying' });
  const leaving = await connectRaw(scene.port);
  leaving.write(requestBytes(scene.port, writeOf(scene, { key: 'leaving' })));
  await until('both to be under way', () => answers.length === 2);
  leaving.end();
  await scene.server.drain(500);
  const answer = await staying;
  t.equal(answer.status, 504, 'it may have acted');
  t.equal((await scene.record(recordOf(answer)))?.state, 'unknown');
  t.equal(scene.unknowns.length, 2);
  t.same(scene.results, ['acquired', 'acquired']);
});

t.test('at its end what was not sent yet is never sent: 503, and the key is free', async (t) => {
  const { scene } = await startHeld(t, 750);
  const held = gate();
  scene.store.behave('reserve', held.fault);
  const asking = scene.write({ key: 'asking' });
  const sending = await connectRaw(scene.port);
  t.teardown(sending.end);
  const bytes = requestBytes(scene.port, writeOf(scene, { key: 'sending' }));
  sending.write(bytes.subarray(0, -3));
  await until(
    'the store to be asked, and the body to come',
    () => held.waiting() === 1 && scene.server.counts().inFlight === 2,
  );
  const drained = scene.server.drain(3_000);
  const refused = await sending.readResponse();
  t.equal(refused?.status, 503, 'the time of those that settle is over');
  t.match(JSON.parse(refused?.text ?? ''), { type: 'urn:sallyport:shutting-down' });
  held.open();
  const answer = await asking;
  t.equal(answer.status, 503);
  t.match(JSON.parse(answer.text), { type: 'urn:sallyport:shutting-down' });
  await drained;
  t.same(scene.results, ['acquired', 'released']);
  t.same(scene.receiver.requests, []);
});

t.test('at its end, while the receiver is being connected to: not sent', async (t) => {
  // It accepts, and never says a word of TLS.
  const silent = createServer();
  const { port } = await listen(t, silent);
  let connections = 0;
  silent.on('connection', (socket) => {
    connections += 1;
    t.teardown(() => socket.destroy());
  });
  const scene = await startScene(t, {
    settleTimeoutMs: 100,
    config: { upstream: { url: `https://127.0.0.1:${port}`, connect_timeout: '20s' } },
  });
  const answer = scene.write({ key: 'k' });
  await until('the handshake to begin', () => connections === 1);
  await scene.server.drain(500);
  t.match(JSON.parse((await answer).text), { type: 'urn:sallyport:shutting-down', status: 503 });
  t.same(scene.unknowns, []);
  t.same(scene.results, ['acquired', 'released']);
});

t.test(
  'what the store did not take is offered once more at the end, and given up with a word on what to do',
  async (t) => {
    const { scene, answers } = await startHeld(t);
    scene.store.behave('complete', down);
    const kept = scene.write({ key: 'kept' });
    await until('it to be under way', () => answers.length === 1);
    answers[0]?.end('done');
    t.equal((await kept).text, 'done');
    scene.store.behave('complete', null);
    await scene.server.drain(0);
    t.same(scene.results, ['acquired', 'completed']);

    const { scene: other, answers: others } = await startHeld(t);
    other.store.behave('complete', down);
    const lost = other.write({ key: 'lost' });
    await until('it to be under way', () => others.length === 1);
    others[0]?.end('done');
    t.equal((await lost).text, 'done');
    await other.server.drain(0);
    t.match(other.logged.at(-1), {
      level: 'error',
      message: /could not be settled/,
      fields: { record: /\./, what_to_do: /record --config FILE resolve/ },
    });
    t.equal(other.unknowns.length, 1, 'it is counted as in doubt');
  },
);
