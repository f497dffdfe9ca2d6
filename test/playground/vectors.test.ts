/** The page decides as the code that serves does in Node.js: the same vectors, in a real browser. */
import t from 'tap';
import { html } from '../../src/built/playground.js';
import * as engine from '../../src/playground/engine.js';
import { runSeed } from '../fuzz/draw.js';
import { openFile } from './page-file.js';
import { damagedConfigs, soundVectors, type Vector } from './vectors.js';

t.setTimeout(300_000);

const nowMs = Date.parse('2026-01-02T03:04:05Z');

type Engine = typeof engine;

/** All that is said of a vector; runs in the page as well, of which it knows the engine alone. */
async function saidOf(sallyport: Engine, { config: text, tests }: Vector, atMs: number): Promise<object> {
  const { config, problems, notes } = sallyport.checkConfig(text);
  if (config === null) return { problems, notes };
  const drafted = await sallyport.draftTests(config, 'sallyport.yaml', atMs);
  return {
    problems,
    notes,
    drafted,
    run: await sallyport.runTests(config, tests ?? drafted, atMs),
    matrix: sallyport.matrixOf(config),
  };
}

/** How two policies differ. */
async function differenceOf(sallyport: Engine, texts: readonly [string, string], atMs: number): Promise<object | null> {
  const [from, to] = [sallyport.checkConfig(texts[0]).config, sallyport.checkConfig(texts[1]).config];
  return from === null || to === null ? null : sallyport.compareConfigs(from, to, atMs);
}

t.test('sound configs, their cases, coverage, matrix and diff', async (t) => {
  t.comment(`seed ${runSeed}`);
  const page = await openFile(t, html);
  const inPage = async (what: (sallyport: Engine, given: never, atMs: number) => Promise<unknown>, given: unknown) =>
    page.evaluate(`(${what.toString()})(sallyport, ${JSON.stringify(given)}, ${nowMs})`);
  const vectors = soundVectors(runSeed, 400, 20);
  for (const vector of vectors) {
    const said = asData(await saidOf(engine, vector, nowMs));
    if (!vector.name.startsWith('table')) t.ok('run' in said, `${vector.name} is sound`);
    t.same(await inPage(saidOf, vector), said, vector.name);
  }
  const tables = vectors.slice(-20).map(({ config }) => config);
  for (const [index, table] of tables.entries()) {
    const pair = [tables[index - 1] ?? tables.at(-1) ?? '', table] as const;
    t.same(await inPage(differenceOf, pair), asData(await differenceOf(engine, pair, nowMs)), `diff ${index}`);
  }
});

t.test('configs that are damaged', async (t) => {
  t.comment(`seed ${runSeed}`);
  const page = await openFile(t, html);
  let refused = 0;
  for (const [index, text] of damagedConfigs(runSeed, 300).entries()) {
    const { config, ...said } = engine.checkConfig(text);
    if (config === null) refused += 1;
    const found = await page.evaluate(
      `(({ config, ...said }) => ({ ...said, isRefused: config === null }))(sallyport.checkConfig(${JSON.stringify(text)}))`,
    );
    t.same(found, asData({ ...said, isRefused: config === null }), `text ${index}`);
  }
  t.ok(refused > 50, `${refused} were refused`);
});

function asData(value: object | null): object {
  return JSON.parse(JSON.stringify(value)) as object;
}
