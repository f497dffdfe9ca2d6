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
const target = 'es2022';

/**
 * Writes the module of each page where it is new or other than before: the compiler goes by the time of files. Returns
 * the files that went into them: none in a project without pages, such as the tests of the runner make.
 */
export async function buildPages() {
  const pages = { console: buildConsole, playground: buildPlayground };
  const modules = [];
  for (const [name, build] of Object.entries(pages)) {
    if (!existsSync(join(root, 'src', name))) continue;
    const { modules: own, ...texts } = await build();
    writeModule(`src/built/${name}.ts`, texts);
    modules.push(...own);
  }
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
    html: pageOf('console', style, script),
    csp,
    modules,
  };
}

/**
 * A file that people keep and open from where it lies: its policy stands in it, and it asks nobody for anything. The
 * code that decides is in it, with stand-ins for the modules of Node.js that it loads.
 */
async function buildPlayground() {
  const folder = join(root, 'src/playground/node');
  const names = ['crypto', 'http', 'net', 'os', 'path'];
  const { script, modules } = await bundle('src/playground/main.tsx', {
    resolve: { alias: Object.fromEntries(names.map((name) => [`node:${name}`, join(folder, `${name}.ts`)])) },
    transform: { target, inject: { Buffer: [join(folder, 'buffer.ts'), 'Buffer'] } },
  });
  const style = read('src/console/style.css') + read('src/playground/style.css');
  const csp = [
    "default-src 'none'",
    `script-src ${digestOf(script)}`,
    `style-src ${digestOf(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  return { html: pageOf('playground', style, script).replace('/* policy */', () => csp), modules };
}

function pageOf(name, style, script) {
  return read(`src/${name}/page.html`)
    .replace('/* style */', () => style)
    .replace('/* script */', () => script);
}

/** One script of a page, as small as it gets. */
async function bundle(input, options = { transform: { target } }) {
  const build = await rolldown({ input: join(root, input), platform: 'browser', logLevel: 'warn', ...options });
  const { output } = await build.generate({ format: 'iife', minify: true });
  await build.close();
  const { code, imports } = output[0];
  if (imports.length > 0) throw new Error(`${input} loads what no browser has: ${imports.join(', ')}`);
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

function writeModule(file, texts) {
  const lines = Object.entries(texts).map(
    ([name, value]) => `export const ${name}: string = ${JSON.stringify(value)};`,
  );
  const text = ['/** Built by .release/pages.mjs. */', ...lines, ''].join('\n');
  const target = join(root, file);
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return;
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPages();
