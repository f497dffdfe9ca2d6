/**
 * Holds Node and the package undici to the one place that they share: the title begins with the symbol that is gone
 * where the test fails.
 */
import { createServer } from 'node:http';
import { Agent, Dispatcher, MockAgent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import t from 'tap';
import { useForFetch } from '../../../src/proxy/node-internals/global-dispatcher.js';
import { listen } from '../../support/listening.js';

t.test(
  'setGlobalDispatcher: what the package undici is told counts for fetch of Node, and is taken back',
  async (t) => {
    const { port } = await listen(
      t,
      createServer((_req, res) => res.end('reached')),
    );
    const before = getGlobalDispatcher();
    const dispatcher = new Agent().compose(
      (dispatch) => (options, handler) => dispatch({ ...options, origin: `http://127.0.0.1:${String(port)}` }, handler),
    );
    const restore = useForFetch(dispatcher, 'http://nowhere.invalid');
    t.teardown(async () => {
      restore();
      await dispatcher.close();
    });
    const answer = await fetch('http://nowhere.invalid/');
    t.equal(await answer.text(), 'reached', 'it did not go where its address says');
    restore();
    t.equal(getGlobalDispatcher(), before);
    await t.rejects(fetch('http://nowhere.invalid/'));
  },
);

const core = 'http://core.invalid:3567/path';

/** Answers nothing, and counts. */
class Counting extends Dispatcher {
  readonly asked: string[] = [];
  isClosed = false;

  override dispatch({ origin }: Dispatcher.DispatchOptions): boolean {
    this.asked.push(String(origin));
    return true;
  }

  override close(): Promise<void>;
  override close(callback: () => void): void;
  override close(callback?: () => void): Promise<void> | undefined {
    this.isClosed = true;
    callback?.();
    return Promise.resolve();
  }

  override destroy(error?: Error | null): Promise<void>;
  override destroy(callback: () => void): void;
  override destroy(error: Error | null, callback: () => void): void;
  override destroy(): Promise<void> {
    return this.close();
  }
}

const handler: Dispatcher.DispatchHandler = {};

function call(origin: string | URL): void {
  getGlobalDispatcher().dispatch({ origin, path: '/', method: 'GET' }, handler);
}

t.test('one that came later is left where it is, and has its own calls', (t) => {
  const before = getGlobalDispatcher();
  const theirs = new Counting();
  setGlobalDispatcher(theirs);
  t.teardown(() => setGlobalDispatcher(before));
  const [first, second] = [new Counting(), new Counting()];
  const restoreFirst = useForFetch(first, core);
  const restoreSecond = useForFetch(second, 'http://second.invalid');
  const ofSecond = getGlobalDispatcher();
  call('http://core.invalid:3567');
  call(new URL('http://core.invalid:3567/'));
  call('http://second.invalid');
  call('http://core.invalid');
  call('no origin');
  t.same(first.asked, ['http://core.invalid:3567', 'http://core.invalid:3567/']);
  t.same(second.asked, ['http://second.invalid']);
  t.same(theirs.asked, ['http://core.invalid', 'no origin']);
  restoreFirst();
  t.equal(getGlobalDispatcher(), ofSecond);
  call('http://core.invalid:3567');
  t.equal(theirs.asked.length, 3, 'what is closed gets no more calls');
  restoreSecond();
  t.equal(getGlobalDispatcher(), theirs, 'and nothing is left of either');
  t.end();
});

t.test('what an application has set, or closes, is its own', async (t) => {
  const before = getGlobalDispatcher();
  t.teardown(() => setGlobalDispatcher(before));
  for (const end of [
    async () => getGlobalDispatcher().close(),
    async () => getGlobalDispatcher().destroy(),
    async () => new Promise<void>((resolve) => getGlobalDispatcher().close(resolve)),
    async () => new Promise<void>((resolve) => getGlobalDispatcher().destroy(resolve)),
    async () => new Promise<void>((resolve) => getGlobalDispatcher().destroy(new Error('over'), resolve)),
  ]) {
    const [theirs, ours] = [new Counting(), new Counting()];
    setGlobalDispatcher(theirs);
    const restore = useForFetch(ours, core);
    await end();
    t.ok(theirs.isClosed);
    t.notOk(ours.isClosed);
    const later = new Counting();
    setGlobalDispatcher(later);
    restore();
    t.equal(getGlobalDispatcher(), later);
  }
});

t.test("an application's stand-in for servers gets bodies as ever", async (t) => {
  const before = getGlobalDispatcher();
  const standIn = new MockAgent();
  standIn.disableNetConnect();
  standIn.get('http://mocked.invalid').intercept({ path: '/', method: 'POST', body: '{"a":1}' }).reply(200, 'matched');
  setGlobalDispatcher(standIn);
  const ours = new Agent();
  const restore = useForFetch(ours, core);
  t.teardown(async () => {
    restore();
    setGlobalDispatcher(before);
    await ours.close();
    await standIn.close();
  });
  const answer = await fetch('http://mocked.invalid/', { method: 'POST', body: '{"a":1}' });
  t.equal(await answer.text(), 'matched');
  standIn.deactivate();
  await t.rejects(fetch('http://mocked.invalid/', { method: 'POST', body: '{"a":1}' }));
});
