/** Which test files can be run here, which cannot for want of a program, and how to get that. */
import { fetchPrograms, source } from './fetched.mjs';
import { loadedBy } from './imports.mjs';
import { isThere, programs } from './programs.mjs';
import { run, timeStep } from './step.mjs';
import { howMany, inShort } from './words.mjs';

/** Each program with the test files of these that need it. */
export function needsOf(files) {
  const loaded = new Map(files.map((file) => [file, loadedBy(file, (one) => one.startsWith('test/'))]));
  return programs.map((program) => {
    const support = `test/support/${program.support ?? program.name}.ts`;
    return { program, files: files.filter((file) => loaded.get(file).has(support)) };
  });
}

/**
 * Looks for what these files need, and says what is missing. With `install`, gets it first; what can be installed and
 * is missing even then is a failure.
 */
export async function findPrograms(files, { install }) {
  const needed = needsOf(files).filter((need) => need.files.length > 0);
  let missing = await missingOf(needed);
  if (!install) {
    report(missing);
    if (missing.some(isInstallable)) console.log('npm test -- --install gets what is missing');
    return { missing, failures: 0 };
  }
  const held = missing.some(isInstallable) ? await installAll(missing) : [];
  missing = await missingOf(missing);
  report(missing);
  return { missing, failures: Math.max(held.filter((one) => !one).length, missing.filter(isInstallable).length) };
}

function report(missing) {
  for (const { program, files } of missing) {
    console.log(`missing: ${program.name}: ${howMany(files, ' is', 's are')} not run; ${howToGet(program)}`);
  }
}

async function missingOf(needed) {
  const there = await Promise.all(needed.map(({ program }) => isThere(program)));
  return needed.filter((_, index) => !there[index]);
}

function isInstallable({ program }) {
  return program.debian !== undefined || (program.fetched === true && source !== null);
}

function howToGet({ debian, fetched, hint }) {
  if (debian !== undefined) return `Debian has it as ${debian.join(' ')}`;
  if (fetched === true) return source === null ? 'put it on the PATH' : `put it on the PATH, or have ${source} fetched`;
  return hint;
}

/** Says what it is about to install, and installs it. */
async function installAll(missing) {
  const held = [];
  const packages = [...new Set(missing.flatMap(({ program }) => program.debian ?? []))];
  if (packages.length > 0) {
    console.log(`to be installed on this machine, by apt-get: ${packages.join(' ')}`);
    held.push(await timeStep('apt-get install', () => installPackages(packages)));
  }
  const fetched = missing.filter(({ program }) => program.fetched === true).map(({ program }) => program.name);
  if (fetched.length > 0 && source !== null) {
    console.log(`to be fetched into node_modules/.cache: ${fetched.join(', ')}, from ${source}`);
    held.push(
      await timeStep('fetch', async () => {
        const output = await fetchPrograms();
        return { held: output === '', output };
      }),
    );
  }
  return held;
}

async function installPackages(packages) {
  const words = ['install', '-y', '--no-install-recommends', ...packages];
  const line = `sudo apt-get update && sudo apt-get ${words.join(' ')}`;
  if ((await run('apt-get', ['--version'])).code !== 0) {
    return {
      held: false,
      output: `There is no apt-get here. Install them, or what this system calls them, and start again: ${packages.join(' ')}`,
    };
  }
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && (await run('sudo', ['-n', 'true'])).code !== 0) {
    return {
      held: false,
      output: `That takes root, and sudo asks for a password here. Type this, and start again:\n  ${line}`,
    };
  }
  const [command, ...before] = [...(isRoot ? [] : ['sudo', '-n', 'env', 'DEBIAN_FRONTEND=noninteractive']), 'apt-get'];
  process.env['DEBIAN_FRONTEND'] = 'noninteractive';
  // Where the lists cannot be refreshed, those that are there may do.
  const update = await run(command, [...before, 'update', '-qq']);
  const installed = await run(command, [...before, '-qq', ...words]);
  return { held: installed.code === 0, output: `${update.output}${installed.output}By hand: ${line}` };
}

/** What was not run, by program, for the end of the run. */
export function summaryOf(missing, total) {
  if (missing.length === 0) return [];
  const all = new Set(missing.flatMap(({ files }) => files));
  const lines = missing.map(
    ({ program, files }) => `  for want of ${program.name}, ${files.length}: ${inShort(files)}`,
  );
  return [`NOT RUN: ${all.size} of ${total} test files`, ...lines];
}
