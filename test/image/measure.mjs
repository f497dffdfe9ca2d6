/**
 * Measures the forms in which Sallyport can be packed, for docs/image.md: CPU and wall time until callers are listened
 * to, memory then, size.
 *
 *   npm run build && npx -y -p node@24 node test/image/measure.mjs [--starts 11]
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';

const {
  values: { starts },
} = parseArgs({ options: { starts: { type: 'string', default: '11' } } });
const node = process.execPath;
const project = resolve(import.meta.dirname, '../..');
const work = mkdtempSync(join(tmpdir(), 'sallyport-measure-'));
const at = (...names) => join(work, ...names);
/** Of `/proc/PID/stat`: USER_HZ, which Linux fixes for programs. */
const ticksPerSecond = 100;

writeFileSync(
  at('sallyport.yaml'),
  JSON.stringify({
    listen: { host: '127.0.0.1', port: 0 },
    admin: { port: 0 },
    upstream: { url: 'http://127.0.0.1:3000' },
    shutdown: { delay: '0ms' },
    routes: [{ name: 'home', methods: ['GET'], path: '/', access: 'public' }],
  }),
);
const serve = ['serve', '--config', at('sallyport.yaml')];

/** Snapshots and single executables take one CommonJS file, which can't await at its top. */
writeFileSync(
  at('one.js'),
  `
import { startupSnapshot } from 'node:v8';
import { createServeCommand } from ${JSON.stringify(join(project, 'dist/cli/commands/serve/run.js'))};
import { createHealthCommand } from ${JSON.stringify(join(project, 'dist/cli/commands/health/run.js'))};
import { processIo } from ${JSON.stringify(join(project, 'dist/cli/process-io.js'))};
function start() {
  const words = process.argv.slice(process.argv.findIndex((word) => word === 'serve' || word === 'health'));
  void (words[0] === 'serve' ? createServeCommand : createHealthCommand)(processIo()).parseAsync(words.slice(1), { from: 'user' });
}
if (startupSnapshot.isBuildingSnapshot()) startupSnapshot.setDeserializeMainFunction(start);
else start();
`,
);

async function bundle(input, options) {
  const build = await rolldown({
    input,
    cwd: project,
    platform: 'node',
    external: ['@node-rs/argon2', '@node-rs/bcrypt'],
    logLevel: 'silent',
  });
  await build.write(options);
  await build.close();
}

function run(command, args, options = {}) {
  return spawnSync(command, args, { cwd: work, encoding: 'utf8', ...options });
}

function must(command, args, options = {}) {
  const { status, stdout, stderr } = run(command, args, options);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stdout}${stderr}`);
}

/** One executable: node, with the file and what it was compiled to inside. */
function makeExecutable(name, config) {
  writeFileSync(
    at(`${name}.json`),
    JSON.stringify({ main: at('one.cjs'), output: at(`${name}.blob`), disableExperimentalSEAWarning: true, ...config }),
  );
  const blob = run(node, ['--experimental-sea-config', at(`${name}.json`)]);
  if (blob.status !== 0) return blob;
  cpSync(node, at(name));
  must(node, [
    join(at('tools'), 'node_modules/postject/dist/cli.js'),
    at(name),
    'NODE_SEA_BLOB',
    at(`${name}.blob`),
    '--sentinel-fuse',
    'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
  ]);
  return blob;
}

/** Median of CPU and memory, quickest wall time, of starts that end when callers are listened to. */
async function measure([command, ...args], env) {
  const rows = [];
  for (let count = -1; count < Number(starts); count++) {
    const row = await startOnce(command, args, env);
    // The first one fills caches.
    if (count >= 0) rows.push(row);
  }
  const median = (of) => rows.map(of).sort((a, b) => a - b)[rows.length >> 1];
  return {
    cpu: median((row) => row.cpu),
    wall: Math.min(...rows.map((row) => row.wall)),
    memory: median((row) => row.memory),
  };
}

async function startOnce(command, args, env) {
  const began = performance.now();
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  let said = '';
  for await (const chunk of child.stdout) {
    said += String(chunk);
    if (!said.includes('"listener":"proxy"')) continue;
    const wall = performance.now() - began;
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1].split(' ');
    const cpu = ((Number(stat[11]) + Number(stat[12])) * 1000) / ticksPerSecond;
    const memory = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) * 1024;
    // In order: the compile cache is written at the end.
    child.kill('SIGTERM');
    await ended;
    return { cpu, wall, memory };
  }
  throw new Error(`${command} ended before it listened: ${said}`);
}

function sizeOf(path) {
  const found = statSync(path);
  return found.isDirectory() ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0) : found.size;
}

function print(form, size, { cpu, wall, memory }) {
  const mb = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
  process.stdout.write(`| ${form} | ${mb(size)} | ${cpu.toFixed(0)} ms | ${wall.toFixed(0)} ms | ${mb(memory)} |\n`);
}

/** The lines of a failure that say what it was. */
function reasonOf({ stdout, stderr }) {
  const lines = `${stdout}\n${stderr}`.split('\n');
  return [
    ...new Set(
      lines
        .filter((line) => /global handle not serialized|Fatal error|failed$|#HTTPParser|Http2Session:/.test(line))
        .map((line) => line.trim()),
    ),
  ];
}

try {
  for (const name of ['package.json', 'package-lock.json', '.npmrc', 'dist']) {
    cpSync(join(project, name), at('plain', name), { recursive: true });
  }
  must('npm', ['ci', '--omit=dev', '--omit=peer', '--ignore-scripts', '--silent'], { cwd: at('plain') });
  must('npm', ['install', '--prefix', at('tools'), '--ignore-scripts', '--silent', 'postject@1.0.0-alpha.6']);
  must(node, [join(project, '.release/bundle.mjs'), at('chunks')], { cwd: project });
  // What is native stays beside a single file.
  cpSync(at('chunks/node_modules'), at('node_modules'), { recursive: true });
  await bundle(join(project, 'dist/main.js'), { file: at('one.mjs'), format: 'esm', codeSplitting: false });
  await bundle(at('one.js'), { file: at('one.cjs'), format: 'cjs', codeSplitting: false });

  process.stdout.write(`Node.js ${process.version}, medians of ${starts} starts\n\n`);
  process.stdout.write(
    '| form | size | CPU to start | wall time, quickest | memory |\n| --- | --- | --- | --- | --- |\n',
  );
  const plain = [node, at('plain/dist/main.js'), ...serve];
  print('dist and production node_modules', sizeOf(at('plain')), await measure(plain, {}));
  print(
    'the same, compile cache',
    sizeOf(at('plain')),
    await measure(plain, { NODE_COMPILE_CACHE: at('plain-cache') }),
  );
  print('one file', sizeOf(at('one.mjs')), await measure([node, at('one.mjs'), ...serve], {}));
  print(
    'one file, compile cache',
    sizeOf(at('one.mjs')),
    await measure([node, at('one.mjs'), ...serve], { NODE_COMPILE_CACHE: at('one-cache') }),
  );
  print('chunks', sizeOf(at('chunks')), await measure([node, at('chunks/main.js'), ...serve], {}));
  print(
    'chunks, compile cache',
    sizeOf(at('chunks')),
    await measure([node, at('chunks/main.js'), ...serve], { NODE_COMPILE_CACHE: at('chunks-cache') }),
  );
  print(
    'one CommonJS file of serve and health',
    sizeOf(at('one.cjs')),
    await measure([node, at('one.cjs'), ...serve], {}),
  );
  print(
    'the same, compile cache',
    sizeOf(at('one.cjs')),
    await measure([node, at('one.cjs'), ...serve], { NODE_COMPILE_CACHE: at('cjs-cache') }),
  );
  for (const [name, config] of [
    ['single executable', {}],
    ['single executable, code cache', { useCodeCache: true }],
  ]) {
    makeExecutable(name, config);
    // Beyond node itself, as the rows above.
    print(name, sizeOf(at(name)) - statSync(node).size, await measure([at(name), ...serve], {}));
  }
  process.stdout.write('\n');
  for (const [what, result] of [
    ['single executable with a snapshot', makeExecutable('snapshot', { useSnapshot: true })],
    ['start-up snapshot', run(node, ['--snapshot-blob', at('serve.blob'), '--build-snapshot', at('one.cjs')])],
    ...['http', 'http2', 'https', 'tls', 'net', 'crypto'].map((module) => {
      writeFileSync(at('module.cjs'), `require('node:${module}');`);
      return [
        `start-up snapshot of require('node:${module}') alone`,
        run(node, ['--snapshot-blob', at('module.blob'), '--build-snapshot', at('module.cjs')]),
      ];
    }),
  ]) {
    process.stdout.write(
      `${what}: ${result.status === 0 ? 'made' : `${result.signal ?? result.status}: ${reasonOf(result).slice(0, 4).join('; ')}`}\n`,
    );
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
