/** Programs that tests start, found on this machine or installed where that takes no password. A test is never skipped for the want of one. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fetchPrograms, has } from './kubernetes.mjs';
import { run } from './step.mjs';

/** `support` is the file under `test/support` that starts it: whoever imports that needs the program. It comes from a Debian package, or `fetch` gets it. */
const programs = [
  { name: 'redis-server', support: 'support/redis-server', package: 'redis-server', isInstalled: hasRedis },
  { name: 'chromium', support: 'support/browser', package: 'chromium-headless-shell', isInstalled: hasBrowser },
  { name: 'postgres', support: 'support/postgres-server', package: 'postgresql', isInstalled: hasPostgres },
  { name: 'python3', support: 'support/python', package: 'python3', isInstalled: hasPython },
  { name: 'prometheus', support: 'support/prometheus', package: 'prometheus', isInstalled: hasPrometheus },
  { name: 'helm', support: 'support/helm', isInstalled: has('helm'), fetch: fetchPrograms },
  { name: 'kubectl', support: 'support/kubectl', isInstalled: has('kubectl'), fetch: fetchPrograms },
];

/** For each program that one of these test files starts: its name, and what finds or installs it. */
export function installPrograms(files) {
  const texts = files.map((file) => readFileSync(file, 'utf8'));
  return programs.filter(({ support }) => texts.some((text) => text.includes(support))).map((program) => [program.name, () => install(program)]);
}

async function install({ name, package: debianPackage, fetch, isInstalled }) {
  if (await isInstalled()) return { held: true };
  if (fetch !== undefined) {
    const output = await fetch();
    return { held: await isInstalled(), output: `${output}${name} was not found and could not be fetched: put it on the PATH and start again` };
  }
  const missing = `${name} was not found and not installed: run \`apt-get install ${debianPackage}\` (or your system's like) and start again`;
  if (process.getuid?.() !== 0) return { held: false, output: missing };
  const update = await run('apt-get', ['update', '-qq']);
  const installed = await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', debianPackage]);
  return { held: await isInstalled(), output: `${update.output}${installed.output}${missing}` };
}

async function hasRedis() {
  return (await run('redis-server', ['--version'])).code === 0;
}

/** With its library: Debian's `python3-minimal` comes without. */
async function hasPython() {
  return (await run('python3', ['-c', 'import wsgiref.simple_server, http.server'])).code === 0;
}

async function hasPrometheus() {
  return (await run('prometheus', ['--version'])).code === 0;
}

async function hasBrowser() {
  return (await run('chromium-headless-shell', ['--version'])).code === 0 || (await run('chromium', ['--version'])).code === 0;
}

async function hasPostgres() {
  const versions = '/usr/lib/postgresql';
  return existsSync(versions) && readdirSync(versions).some((version) => existsSync(`${versions}/${version}/bin/postgres`));
}
