/**
 * Holds Node and the package undici to the one place that they share: the title begins with the symbol that is gone
 * where the test fails.
 */
import { createServer } from 'node:http';
import { Agent, getGlobalDispatcher } from 'undici';
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
    const restore = useForFetch(dispatcher);
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

t.test('one that came later is left where it is', (t) => {
  const before = getGlobalDispatcher();
  const restoreFirst = useForFetch(new Agent());
  const second = new Agent();
  const restoreSecond = useForFetch(second);
  restoreFirst();
  t.equal(getGlobalDispatcher(), second);
  restoreSecond();
  t.not(getGlobalDispatcher(), second);
  useForFetch(before);
  t.end();
});
