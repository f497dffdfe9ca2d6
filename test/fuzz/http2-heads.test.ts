/** RFC 9113 §10.3: what a caller of HTTP/2 sends reaches an upstream of HTTP/1.1 as one sound request, or not. */
import t from 'tap';
import { connectExact } from '../support/http2-exact.js';
import { drawFrom, runSeed } from './draw.js';
import { headOf, someHttp2Head } from './http2-heads.js';
import { differenceOf } from './in-process.js';
import { makeTokens } from './keyring.js';
import { judge } from './model.js';
import { policies } from './policies.js';
import { startStreamStage } from './stream-stage.js';

t.setTimeout(120_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

const ownFields = ['connection', 'transfer-encoding', 'content-length', 'via'];

t.test('of heads over HTTP/2 only what the model lets through reaches the upstream, as one request', async (t) => {
  const [policy] = policies;
  if (policy === undefined) throw new Error('no policy');
  const stage = await startStreamStage(t, policy, { http2: true });
  const tokens = makeTokens(runSeed, 50);
  let reached = 0;
  for (let number = 0; number < 1200; number++) {
    const list = someHttp2Head(drawFrom(runSeed, number), tokens);
    const client = await connectExact(stage.proxy.port);
    await client.ask({ fields: list.flat(), body: null, isHead: list.some(([, value]) => value === 'HEAD') });
    client.close();
    const { requests, garbage } = stage.taken();
    const why = `case ${String(number)}: ${JSON.stringify(list)}`;
    if (garbage.length > 0 || requests.length > 1) t.fail(`${why}: more than one request: ${garbage.join()}`);
    const [got] = requests;
    if (got === undefined) continue;
    reached += 1;
    const head = headOf(list);
    const expected = head === null ? null : judge(head, stage.surroundings);
    if (head === null || expected?.kind !== 'forwarded') {
      t.fail(`${why}: reached the upstream`);
      continue;
    }
    const lower = <V>(fields: readonly (readonly [string, V])[]): (readonly [string, V])[] =>
      fields.map(([name, value]) => [name.toLowerCase(), value] as const).filter(([name]) => !ownFields.includes(name));
    const difference = differenceOf(lower(got.head.fields), { ...expected, fields: lower(expected.fields) });
    if (difference !== null || got.head.method !== head.method || got.head.target !== head.target) {
      t.fail(`${why}: ${difference ?? `${got.head.method} ${got.head.target}`}`);
    }
  }
  t.ok(reached > 30, `${String(reached)} reached the upstream`);
});
