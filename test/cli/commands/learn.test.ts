/** `sallyport learn` as a process: what it reads, what it writes, and that nothing it writes is in force. */
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { often } from '../../policy-test/learn/log-lines.js';
import { scoreOf } from '../../policy-test/learn/score.js';
import { hostileKinds, shopLog } from '../../policy-test/learn/shop.js';
import { baseConfig } from '../../support/proxy-process.js';
import { compiled, folderWith, health, sallyport, shadow, unclearIn } from './run-learn.js';

const ordersLog = [...often('/orders'), ...often('/orders/#'), ...often('/orders', { method: 'POST' })].join('\n');

t.setTimeout(180_000);

t.test('from the log of a shop to a policy: what is right, too wide, too narrow', (t) => {
  const folder = folderWith(t);
  const log = [...shopLog(12_000, 11)].join('');
  writeFileSync(join(folder, 'shop.log'), log);
  const args = ['shop.log', '--config', 'sallyport.yaml', '--out', 'learnt'];
  const before = readFileSync(join(folder, 'sallyport.yaml'), 'utf8');
  const { code, out, err } = sallyport(folder, ['learn', ...args]);
  t.equal(code, 0, err);
  const score = scoreOf(compiled(join(folder, 'learnt/learnt.yaml')), new Set(['health']));
  // Words that a single caller uses are values from a hundred of them on: so many lines do not hold that.
  const tooNarrow = [
    'DELETE /products/{slug}/reviews/{number} moderation',
    'POST /products/{slug}/reviews storefront',
    'HEAD /products/{slug} search',
  ];
  t.same(score, { right: 37, tooWide: [], tooNarrow, invented: [], moreAsked: 28 });
  t.equal(sallyport(folder, ['check', '--strict', 'learnt/learnt.yaml']).code, 0);
  const tests = sallyport(folder, ['test', 'learnt/learnt.test.yaml', '--min-coverage', '100']);
  t.equal(tests.code, 0, tests.out);
  t.match(readFileSync(join(folder, 'learnt/learnt.diff'), 'utf8'), /gains: reporting with .*orders:export/);
  t.equal(readFileSync(join(folder, 'learnt/learnt.txt'), 'utf8'), out);
  t.match(out, /\/customers\/\{id\} by carrier, \d+ times: its numbers follow one another/);
  const unclear = unclearIn(out);
  t.ok(unclear.some((line) => /^DELETE \/orders\/\{id\} \(delete-orders-id\): \d+ permissions, 1 caller$/.test(line)));
  t.notOk(
    unclear.some((line) => line.startsWith('GET /orders/{id} ')),
    'what callers with other tokens share is learnt',
  );
  t.equal(readFileSync(join(folder, 'sallyport.yaml'), 'utf8'), before, 'the config is as it was');
  const written = readdirSync(join(folder, 'learnt'));
  t.same(written.toSorted(), ['learnt.diff', 'learnt.test.yaml', 'learnt.txt', 'learnt.yaml']);
  for (const name of written) {
    t.notMatch(readFileSync(join(folder, 'learnt', name), 'utf8'), /tok_live|admin:all|wp-login/, name);
  }
  const first = written.map((name) => readFileSync(join(folder, 'learnt', name), 'utf8'));
  t.equal(sallyport(folder, ['learn', ...args]).code, 0);
  t.same(
    written.map((name) => readFileSync(join(folder, 'learnt', name), 'utf8')),
    first,
    'the same log says the same again',
  );
  t.end();
});

t.test('with nothing but hostile lines nothing is proposed', (t) => {
  const folder = folderWith(t);
  const { code, out, err } = sallyport(
    folder,
    ['learn', '-', '--config', 'sallyport.yaml', '--json'],
    [...shopLog(4_000, 5, 1)].join(''),
  );
  t.equal(code, 0, err);
  const { routes, subjects, skipped } = JSON.parse(out) as Record<string, Record<string, unknown>>;
  t.same([routes, subjects], [[], []]);
  t.same(Object.keys(skipped ?? {}).toSorted(), ['broken', 'long', 'other', 'path', 'subject', 'unverified']);
  t.equal(hostileKinds.length, 12);
  t.end();
});

t.test('a log may be a file, several, standard input, and packed, whatever it is called', (t) => {
  const folder = folderWith(t);
  const half = ordersLog.length / 2;
  const cut = ordersLog.indexOf('\n', half) + 1;
  writeFileSync(join(folder, 'plain.gz'), ordersLog);
  writeFileSync(join(folder, 'packed.log'), gzipSync(ordersLog));
  writeFileSync(join(folder, 'one.log'), ordersLog.slice(0, cut));
  writeFileSync(
    join(folder, 'members.log'),
    Buffer.concat([gzipSync(ordersLog.slice(0, cut)), gzipSync(ordersLog.slice(cut))]),
  );
  const said = (logs: readonly string[], input: string | Buffer = ''): string => {
    const { out, err, code } = sallyport(folder, ['learn', ...logs, '--config', 'sallyport.yaml'], input);
    t.equal(code, 0, err);
    return out;
  };
  const plain = said(['plain.gz']);
  t.match(plain, /^60 lines[^]*GET \/orders\/\{id\} \(get-orders-id\): checkout with orders:read; 20 requests/);
  t.equal(said(['packed.log']), plain);
  t.equal(said(['members.log']), plain);
  t.equal(said(['-'], gzipSync(ordersLog)), plain);
  t.equal(said(['one.log', '-'], ordersLog.slice(cut).replaceAll('\n', '\r\n')), plain);
  t.equal(existsSync(join(folder, 'learnt.yaml')), false, 'without --out nothing is written');
  t.end();
});

t.test('what cannot be read, or would be overwritten, is refused and nothing is written', (t) => {
  const folder = folderWith(t);
  writeFileSync(join(folder, 'a.log'), ordersLog);
  writeFileSync(join(folder, 'cut.gz'), gzipSync(ordersLog).subarray(0, 200));
  mkdirSync(join(folder, 'inforce'));
  writeFileSync(join(folder, 'inforce/learnt.yaml'), baseConfig(shadow));
  symlinkSync('inforce/learnt.yaml', join(folder, 'linked.yaml'));
  const rows: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['no log', [], /missing required argument 'logs'/],
    ['a log that is not there', ['b.log'], /error: b\.log: does not exist/],
    ['a folder', ['.'], /error: \.: is a directory/],
    ['a log cut off', ['cut.gz'], /error: cut\.gz: is damaged, or cut off/],
    ['one log twice', ['a.log', 'a.log'], /a\.log is named twice/],
    ['the same by another name', ['a.log', './a.log'], /is named twice/],
    ['no days', ['a.log', '--min-days', '0'], /Allowed: a whole number from 1/],
    ['the config from standard input', ['-', '--config', '-'], /--config has to be a file/],
    ['the config in force', ['a.log', '--config', 'inforce/learnt.yaml', '--out', 'inforce'], /is the config in force/],
    ['the same by a link', ['a.log', '--config', 'linked.yaml', '--out', 'inforce'], /is the config in force/],
    ['a folder that is a file', ['a.log', '--config', 'sallyport.yaml', '--out', 'a.log'], /cannot be written into/],
  ];
  for (const [name, args, says] of rows) {
    const { code, err } = sallyport(folder, ['learn', ...args]);
    t.equal(code, 2, name);
    t.match(err, says, name);
  }
  t.equal(readFileSync(join(folder, 'inforce/learnt.yaml'), 'utf8'), baseConfig(shadow));
  t.equal(existsSync(join(folder, 'learnt.yaml')), false);
  t.end();
});

t.test('a config keeps its comments, order and files, and its end', (t) => {
  const folder = folderWith(t);
  const text = [
    '# ours',
    baseConfig({ ...shadow, upstream: { url: 'https://orders.internal', ca_file: 'keys/ca.pem' } }).trimEnd(),
    '# the last word',
    '...',
    '',
  ].join('\n');
  writeFileSync(join(folder, 'sallyport.yaml'), text);
  const { code, err } = sallyport(
    folder,
    ['learn', '-', '--config', 'sallyport.yaml', '--out', 'sub/learnt'],
    ordersLog,
  );
  t.equal(code, 0, err);
  const written = readFileSync(join(folder, 'sub/learnt/learnt.yaml'), 'utf8');
  t.match(written, /^# Written by sallyport learn[^\n]*\n# ours\n/);
  t.match(written, /ca_file: \.\.\/\.\.\/keys\/ca\.pem/);
  t.match(written, /# the last word\n\.\.\.\n$/);
  t.notMatch(written, /shadow(?! mode)/);
  t.equal(sallyport(folder, ['check', '--strict', '--end-marker', 'sub/learnt/learnt.yaml']).code, 0);
  t.end();
});

t.test('where a lax router would mix two routes up, the one that lets more through is left out', (t) => {
  const folder = folderWith(t, { mode: 'shadow', routes: [health] });
  const log = [...often('/orders/#'), ...often('/orders/export', { subject: 'reporting' })].join('\n');
  const { code, out, err } = sallyport(folder, ['learn', '-', '--config', 'sallyport.yaml', '--out', 'learnt'], log);
  t.equal(code, 0, err);
  t.match(out, /GET \/orders\/export \(get-orders-export\): reporting/);
  t.match(
    out,
    /GET \/orders\/\{id\} by checkout, 20 times: the check refuses its route: .*receiver\.case_sensitive: true/,
  );
  t.equal(sallyport(folder, ['check', '--strict', 'learnt/learnt.yaml']).code, 0);
  t.end();
});
