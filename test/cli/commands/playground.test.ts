/** `sallyport playground` as a process: what it writes, and over what it does not write. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { exampleConfig, exampleTests } from '../../../src/playground/example.js';
import { tempDir } from '../../support/temp-dir.js';
import { sallyport, type Ended } from './run-learn.js';

const playground = (cwd: string, args: readonly string[], input = ''): Ended =>
  sallyport(cwd, ['playground', ...args], input);

/** The files that a page begins with. */
function filesIn(page: string): unknown {
  return JSON.parse(/<script type="application\/json" id="files">(.*)<\/script>/.exec(page)?.[1] ?? 'null');
}

t.test('a page with an example, or with files', (t) => {
  const cwd = tempDir(t);
  t.match(playground(cwd, ['--out', 'a.html']), { code: 0, out: '', err: 'wrote a.html: open it in a browser\n' });
  t.same(filesIn(readFileSync(join(cwd, 'a.html'), 'utf8')), { config: null, tests: null });
  writeFileSync(join(cwd, 'orders.yaml'), `${exampleConfig}# </script><!-- $&\n`);
  writeFileSync(join(cwd, 'policy.test.yaml'), exampleTests);
  const { code, out } = playground(cwd, ['--out', '-', '--config', 'orders.yaml', '--tests', 'policy.test.yaml']);
  t.equal(code, 0);
  t.same(filesIn(out), {
    config: { name: 'orders.yaml', text: `${exampleConfig}# </script><!-- $&\n` },
    tests: { name: 'policy.test.yaml', text: exampleTests },
  });
  t.equal(out.split('</script>').length, 3, 'no text ends an element of the page');
  const piped = playground(cwd, ['--out', '-', '--config', '-'], 'routes: not sound');
  t.same(filesIn(piped.out), { config: { name: 'sallyport.yaml', text: 'routes: not sound' }, tests: null });
  t.notMatch(out, /\b(?:src|href)="(?!data:)/, 'it loads nothing');
  t.end();
});

t.test('an older page is replaced, and nothing else', (t) => {
  const cwd = tempDir(t);
  playground(cwd, ['--out', 'page.html']);
  symlinkSync('page.html', join(cwd, 'link.html'));
  writeFileSync(join(cwd, 'c.yaml'), exampleConfig);
  t.equal(playground(cwd, ['--out', 'link.html', '--config', 'c.yaml']).code, 0);
  t.match(filesIn(readFileSync(join(cwd, 'page.html'), 'utf8')), { config: { name: 'c.yaml' } });
  mkdirSync(join(cwd, 'folder'));
  for (const [out, why] of [
    ['c.yaml', /c\.yaml: there is a file that is no playground; allowed: another name/],
    ['folder', /is no playground/],
    ['/dev/null', /is no playground/],
    ['missing/page.html', /missing\/page\.html: its folder does not exist\n/],
  ] as const) {
    const { code, err } = playground(cwd, ['--out', out, '--config', 'c.yaml']);
    t.equal(code, 2, out);
    t.match(err, why);
  }
  t.equal(readFileSync(join(cwd, 'c.yaml'), 'utf8'), exampleConfig);
  t.same(readdirSync(cwd).toSorted(), ['c.yaml', 'folder', 'link.html', 'page.html'], 'nothing is left over');
  t.end();
});

t.test('what cannot be read, and secrets that stand in a config', (t) => {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'bytes.yaml'), Buffer.from([0xff, 0xfe]));
  const secret = 'very-secret-0123456789';
  const held = [
    `sessions:\n  api_key: ${secret}\n`,
    `sessions: { api_key: "${secret}" }\n`,
    `store:\n  redis:\n    url: redis://user:${secret}@127.0.0.1\n`,
    `store: { redis: { password_file: ${secret} } }\n`,
    `# api_key: ${secret}\n`,
    `# redis://user:${secret}@127.0.0.1\n`,
    `a: Bearer ${secret}\n`,
  ];
  for (const text of held) {
    writeFileSync(join(cwd, 'held.yaml'), text);
    const { code, err } = playground(cwd, ['--out', 'page.html', '--config', 'held.yaml']);
    t.equal(code, 1, text);
    t.match(err, /^error: held\.yaml:\d: what stands here may be a secret/);
    t.notMatch(err, secret);
  }
  const free = [
    'sessions: { api_key: "${file:/run/key}" }\n',
    'store: { redis: { password_file: /run/password, url: redis://127.0.0.1 } }\n',
    'listen: { dpop: { nonce_key_file: null } }\nroutes:\n  - permissions: [\n      orders:read\n    ]\n',
    readFileSync('config.example.yaml', 'utf8'),
  ];
  for (const text of free) t.equal(playground(cwd, ['--out', '-', '--config', '-'], text).code, 0, text.slice(0, 80));
  for (const [args, why] of [
    [['--out', 'p.html', '--config', 'none.yaml'], /none\.yaml/],
    [['--out', 'p.html', '--config', 'bytes.yaml'], /bytes\.yaml: is not UTF-8 text/],
    [['--out', 'p.html', '--tests', 'none.yaml'], /none\.yaml/],
    [['--out', 'p.html', '--tests', '-'], /--tests has to be a file/],
    [[], /--out/],
  ] as const) {
    const { code, err } = playground(cwd, args);
    t.equal(code, 2, args.join(' '));
    t.match(err, why);
  }
  t.equal(existsSync(join(cwd, 'page.html')) || existsSync(join(cwd, 'p.html')), false);
  t.end();
});
