/**
 * Builds the pages that people see in a browser, each into a module of its own in `src/built`, which the compiler and
 * the bundle take like any other. `npm run build` runs it first.
 *
 * A page is one text: its script and its style stand in it, and its policy (CSP) names the digest of each, so that
 * nothing else runs there and nothing is fetched.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Writes the module of each page where it is new or other than before: the compiler goes by the time of files. Returns
 * the files that went into them: none in a project without pages, such as the tests of the runner make.
 */
export async function buildPages() {
  if (!existsSync(join(root, 'src/console'))) return { held: true, modules: [] };
  const { modules, ...page } = await buildConsole();
  await writeModule('src/built/console.ts', page);
  return { held: true, modules };
}

async function buildConsole() {
  const { script, modules } = await bundle('src/console/main.tsx');
  const style = read('node_modules/uplot/dist/uPlot.min.css') + read('src/console/style.css');
  // No other origin is asked, and no text of a caller becomes markup: the browser itself sees to both.
  const csp = [
    "default-src 'none'",
    `script-src ${digestOf(script)}`,
    `style-src ${digestOf(style)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  return {
    html: read('src/console/page.html')
      .replace('/* style */', () => style)
      .replace('/* script */', () => script),
    csp,
    modules,
  };
}

/** One script of a page, as small as it gets. */
async function bundle(input) {
  const build = await rolldown({
    input: join(root, input),
    platform: 'browser',
    logLevel: 'warn',
    transform: { target: 'es2022' },
  });
  const { output } = await build.generate({ format: 'iife', minify: true });
  await build.close();
  const { code } = output[0];
  // It stands in a page, which such a text would end.
  if (/<\/script|<!--/i.test(code)) throw new Error(`${input} has a text that ends or hides a script`);
  return { script: code, modules: output[0].moduleIds };
}

function digestOf(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function read(file) {
  return readFileSync(join(root, file), 'utf8');
}

async function writeModule(file, { html, csp }) {
  const text = [
    '/** Built by .release/pages.mjs. */',
    `export const html: string = ${JSON.stringify(html)};`,
    `export const csp: string = ${JSON.stringify(csp)};`,
    '',
  ].join('\n');
  const target = join(root, file);
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return;
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPages();
