/** Outside of a clone, `npx sallyport` asks a public registry for a name that anybody may take: docs/install.md. */
import t from 'tap';
import { projectFiles, readProjectFile } from '../support/source-files.js';

/** Of a page, the lines that have npx look for the command at a registry where it is not installed. */
function bareCalls(text: string): readonly string[] {
  return text.split('\n').filter((line) => /\bnpx (?!--no )(?:-\S+ )*sallyport\b/.test(line));
}

t.test('no page for operators has them type npx sallyport', (t) => {
  const pages = projectFiles('docs').filter((path) => path.endsWith('.md') && path !== 'docs/install.md');
  t.ok(pages.length > 30, 'the pages are found');
  for (const page of pages) t.same(bareCalls(readProjectFile(page)), [], page);
  t.end();
});

t.test('the README has it in a clone alone, and says so', (t) => {
  const readme = readProjectFile('README.md');
  const [first = ''] = bareCalls(readme);
  t.match(first, /^npm ci && npx sallyport dev/, 'first of all the clone is made ready');
  t.match(readme, /type `npx sallyport` only in a clone, or where the package is installed\./);
  t.end();
});

t.test('what is looked for is found', (t) => {
  for (const bare of ['npx sallyport check', '$ npx -y sallyport', 'run `npx sallyport` now']) {
    t.equal(bareCalls(bare).length, 1, bare);
  }
  for (const fine of ['npx --no -- sallyport check', 'sallyport check', 'npx -y -p node@24 node x']) {
    t.equal(bareCalls(fine).length, 0, fine);
  }
  t.end();
});
