/**
 * Bundles `dist` for the image: `npm run bundle [-- [--tools] FOLDER]`. The proxy alone, or with the tools beside it:
 * the emulator of the Core, `dev`, and the import of users. One folder without `node_modules`, but for native modules,
 * that starts in half the time; commands stay chunks of their own, so that `health` does not load the proxy. Beside it,
 * the CycloneDX list of every package in it, and their licences.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { noticesOf } from './notices.mjs';
import { buildPages } from './pages.mjs';

const withTools = process.argv.includes('--tools');
const [out = 'bundle'] = process.argv.slice(2).filter((word) => word !== '--tools');
/** Native: loaded as they are. Only the emulator asks for them. */
const native = withTools ? ['@node-rs/argon2', '@node-rs/bcrypt'] : [];
/** Empties the list of tools, so that the bundle has none of them. */
const withoutTools = {
  name: 'without-tools',
  load: (id) => (id === resolve('dist/cli/tools.js') ? 'export const tools = {};' : null),
};

/**
 * What the proxy uses of undici. Its index loads five times as much: `fetch`, WebSockets, caches, mocks. Among them is
 * what has Node.js load its own copy as well.
 */
const undiciFile = resolve('node_modules/undici/used.js');
const usedOfUndici = {
  name: 'used-of-undici',
  resolveId: (id) => (id === 'undici' ? undiciFile : null),
  load: (id) =>
    id === undiciFile
      ? `import Agent from './lib/dispatcher/agent.js';
         import Dispatcher from './lib/dispatcher/dispatcher.js';
         import { request } from './lib/api/index.js';
         import buildConnector from './lib/core/connect.js';
         import { getGlobalDispatcher, setGlobalDispatcher } from './lib/global.js';
         Dispatcher.prototype.request = request;
         export { Agent, Dispatcher, buildConnector, getGlobalDispatcher, setGlobalDispatcher };`
      : null,
};

/** What Fastify loads for applications that have schemas or are under test: ours have none, and serve. */
const unused = ['@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler', 'light-my-request'];
const withoutUnused = {
  name: 'without-unused',
  resolveId: (id) => (unused.includes(id) ? `\0unused:${id}` : null),
  load: (id) => (id.startsWith('\0unused:') ? `throw new Error('${id.slice(8)} is not in the bundle');` : null),
};

/**
 * Takes of Node's modules what is used. An `import` of one looks at all that it exports, and behind some names is more
 * to load: with `WebSocket` of `node:http` comes Node's own undici, 14 MiB.
 */
const takeBuiltins = {
  name: 'take-builtins',
  renderChunk(code) {
    const imports = this.parse(code).body.filter(
      ({ type, source }) => type === 'ImportDeclaration' && builtinModules.includes(source.value.replace(/^node:/, '')),
    );
    return imports.reduceRight(
      (text, { start, end, specifiers, source }) =>
        text.slice(0, start) + taken(specifiers, source.value) + text.slice(end),
      code,
    );
  },
};

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages;
const { name, version, license } = JSON.parse(readFileSync('package.json', 'utf8'));

rmSync(out, { recursive: true, force: true });
const build = await rolldown({
  input: 'dist/main.js',
  platform: 'node',
  external: native,
  logLevel: 'silent',
  plugins: [usedOfUndici, withoutUnused, takeBuiltins, ...(withTools ? [] : [withoutTools])],
});
// Node keeps the source of what runs: without comments, and in one byte a character, that is 8 MB less. Names stay,
// some of which are looked at.
const minify = { compress: false, mangle: false, codegen: { removeWhitespace: true, asciiOnly: true } };
// One letter that is not of ASCII, in a notice of a licence, would have the engine keep two bytes for each of a chunk.
const comments = { legal: false };
// Of one chunk the proxy starts sooner than of seventy.
let served = null;
const codeSplitting = {
  // Else the chunk would take what the health check loads, too.
  includeDependenciesRecursively: false,
  groups: [
    {
      name: (id, chunks) => {
        served ??= servedModules((one) => chunks.getModuleInfo(one));
        return served.has(id) ? 'serve' : null;
      },
    },
  ],
};
const { output } = await build.write({ dir: out, format: 'esm', minify, comments, codeSplitting });
await build.close();
const modules = output.flatMap((chunk) => chunk.moduleIds ?? []);
const strays = modules.filter((id) => /[\\/]dist[\\/](?:core-emulator|user-import)[\\/]/.test(id));
if (!withTools && strays.length > 0) throw new Error(`the proxy would carry ${strays.join(', ')}`);
writeFileSync(`${out}/package.json`, `${JSON.stringify({ name, version, license, type: 'module' })}\n`);

// What is in the pages for browsers is in texts of the bundle.
const hasPages = modules.some((id) => /[\\/]dist[\\/]built[\\/]/.test(id));
const ofPages = hasPages ? (await buildPages()).modules : [];
const places = new Set([...modules, ...ofPages].flatMap(placeOf));
for (const one of native) {
  const builds = Object.keys(lock[`node_modules/${one}`].optionalDependencies);
  for (const place of [one, ...builds].map((dependency) => `node_modules/${dependency}`)) {
    if (!existsSync(place)) continue;
    places.add(place);
    mkdirSync(`${out}/${place}`, { recursive: true });
    cpSync(place, `${out}/${place}`, { recursive: true });
  }
}
const packages = [...places].sort().map(packageAt);
// The bundler puts a few lines of its own into what it makes.
const hasRuntime = modules.some((id) => id.includes('rolldown/runtime'));
cpSync('LICENSE', `${out}/LICENSE`);
writeFileSync(
  `${out}/THIRD-PARTY-NOTICES`,
  noticesOf(hasRuntime ? [...packages, packageAt('node_modules/rolldown')] : packages),
);
writeFileSync(`${out}/sbom.cdx.json`, `${JSON.stringify(sbom(), null, 2)}\n`);
process.stdout.write(`${String(output.length)} chunks and ${String(places.size)} packages in ${out}/\n`);

/** What the proxy loads at its start, but for what the help and the health check load, too. */
function servedModules(getModuleInfo) {
  const served = loadedWith('dist/cli/commands/serve/run.js', getModuleInfo);
  for (const other of ['dist/cli/commands/health/run.js', 'dist/cli/program.js']) {
    for (const id of loadedWith(other, getModuleInfo)) served.delete(id);
  }
  return served;
}

/** A module, what it imports, and what that imports; not what is imported when it is needed. */
function loadedWith(file, getModuleInfo) {
  const found = new Set();
  const waiting = [resolve(file)];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    waiting.push(...(getModuleInfo(id)?.importedIds ?? []));
  }
  return found;
}

/** The declarations that stand for an import of a module of Node.js. */
function taken(specifiers, source) {
  const whole = `globalThis.process.getBuiltinModule(${JSON.stringify(source)})`;
  const parts = specifiers.filter(({ type }) => type === 'ImportSpecifier');
  const names = parts.map(({ imported, local }) => `${imported.name}: ${local.name}`);
  return [
    ...specifiers.filter((one) => !parts.includes(one)).map(({ local }) => `const ${local.name} = ${whole};`),
    ...(parts.length === 0 ? [] : [`const { ${names.join(', ')} } = ${whole};`]),
  ].join(' ');
}

/** Where the lock file has the package of a module; none for modules of ours. */
function placeOf(id) {
  const place = /(?:.*\/)?(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(
    id.replaceAll('\\', '/'),
  )?.[1];
  return place === undefined ? [] : [place];
}

/** What the lock file says of a package. */
function packageAt(folder) {
  const found = lock[folder];
  if (found === undefined) throw new Error(`${folder} is not in the lock file`);
  return { ...found, folder, name: folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length) };
}

function sbom() {
  const components = packages.map((one) => {
    const [algorithm, digest] = one.integrity.split('-', 2);
    return {
      type: 'library',
      name: one.name,
      version: one.version,
      purl: `pkg:npm/${one.name.replace('@', '%40')}@${one.version}`,
      ...(one.license === undefined ? {} : { licenses: [{ expression: one.license }] }),
      hashes: [{ alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') }],
    };
  });
  const unique = [...new Map(components.map((component) => [component.purl, component])).values()];
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { type: 'application', name, version, licenses: [{ license: { id: license } }] } },
    components: unique,
  };
}
