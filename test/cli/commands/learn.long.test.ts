/** A million lines of a shop: the policy that comes of them, and the memory that it takes. */
import { createWriteStream, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { scoreOf } from '../../policy-test/learn/score.js';
import { shopLog } from '../../policy-test/learn/shop.js';
import { compiled, folderWith, sallyport, unclearIn } from './run-learn.js';

const lines = Number(process.env['SALLYPORT_LINES'] ?? 1_000_000);

/** MiB; what 100,000 lines take is not much less. */
const mostMemory = 320;

t.setTimeout(900_000);

t.test('a million lines, 2 % of them hostile', async (t) => {
  const folder = folderWith(t);
  const file = createWriteStream(join(folder, 'shop.log'));
  for (const line of shopLog(lines, 7)) if (!file.write(line)) await once(file, 'drain');
  file.end();
  await once(file, 'finish');
  const probe = join(folder, 'memory.cjs');
  writeFileSync(probe, "process.on('exit', () => console.error(`memory ${process.resourceUsage().maxRSS}`));");
  const { code, out, err } = sallyport(
    folder,
    ['learn', 'shop.log', '--config', 'sallyport.yaml', '--out', 'learnt'],
    '',
    ['--require', probe],
  );
  t.equal(code, 0, err);
  const memory = Number(/memory (\d+)/.exec(err)?.[1]) / 1024;
  t.ok(memory < mostMemory, `${String(Math.round(memory))} MiB`);
  const score = scoreOf(compiled(join(folder, 'learnt/learnt.yaml')), new Set(['health']));
  t.same(score, { right: 40, tooWide: [], tooNarrow: [], invented: [], moreAsked: 31 });
  t.equal(unclearIn(out).length, score.moreAsked, 'the report names each route that asks for more');
  t.equal(sallyport(folder, ['check', '--strict', 'learnt/learnt.yaml']).code, 0);
  t.equal(sallyport(folder, ['test', 'learnt/learnt.test.yaml']).code, 0);
  t.comment(JSON.stringify({ lines, memory: Math.round(memory), ...score }));
});
