import type { ServerResponse } from 'node:http';
import t from 'tap';
import { until } from '../support/until.js';
import { beginWrite, problemOrStatus, shareRedis, write } from './shared-redis.js';

t.test('SIGTERM lets writes finish, with and without their caller, and marks what is left as in doubt', async (t) => {
  const shared = await shareRedis(t, {
    store: { settle_timeout: '300ms' },
    config: { shutdown: { delay: '0s', grace: '2s' } },
  });
  const [ending, other] = [await shared.startProxy(), await shared.startProxy()];
  const answers = new Map<string, ServerResponse>();
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => answers.set(String(req.headers['idempotency-key']), res));
  });
  const staying = await beginWrite(t, ending, { key: 'staying' });
  const leaving = await beginWrite(t, ending, { key: 'leaving' });
  const hanging = await beginWrite(t, ending, { key: 'hanging' });
  await until('the receiver to have all', () => answers.size === 3);
  leaving.end();
  ending.process.signal('SIGTERM');
  await until('it to drain', async () =>
    ending.admin('/readyz').then(
      ({ status }) => status === 503,
      () => true,
    ),
  );
  answers.get('staying')?.end('stayed');
  answers.get('leaving')?.end('left');
  t.equal((await staying.readResponse())?.text, 'stayed');
  t.equal((await hanging.readResponse())?.status, 504, 'it may have acted');
  t.match(await ending.process.exited, { code: 0 });
  t.equal((await write(other, { key: 'staying' })).text, 'stayed');
  t.equal((await write(other, { key: 'leaving' })).text, 'left');
  t.equal(problemOrStatus(await write(other, { key: 'hanging' })), 'idempotency-outcome-unknown', 'not free');
  t.equal(shared.executions().length, 3);
});
