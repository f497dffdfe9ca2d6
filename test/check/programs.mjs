/** Programs that tests start, and how to get them: one line for each. */
import { existsSync, readdirSync } from 'node:fs';
import { runs } from './fetched.mjs';
import { run } from './step.mjs';

/** What the tests expect of `sh` and what belongs to it. */
const tools =
  'for tool in cat chmod cp env head mkdir mkfifo mv rm sed sort uniq; do command -v "$tool" || exit 1; done';

/**
 * A test file needs the program when it imports `test/support/<support>.ts` (the program's name unless given), itself
 * or through others. `check` is a command that fails where the program is not there, or a function that tells. It comes
 * with Debian packages (`debian`), is `fetched` into the clone, or is nothing that can be installed, and `hint` says
 * why it is needed.
 */
export const programs = [
  { name: 'apache2', support: 'apache', debian: ['apache2-bin'], check: ['/usr/sbin/apache2', '-v'] },
  { name: 'bash', debian: ['bash'], check: ['bash', '--version'] },
  { name: 'caddy', debian: ['caddy'], check: ['caddy', 'version'] },
  { name: 'chromium', support: 'browser', debian: ['chromium-headless-shell'], check: hasBrowser },
  { name: 'curl', debian: ['curl'], check: ['curl', '--version'] },
  { name: 'fish', debian: ['fish'], check: ['fish', '--version'] },
  { name: 'gcc', debian: ['gcc', 'libc6-dev'], check: ['gcc', '--version'] },
  { name: 'git', debian: ['git'], check: ['git', '--version'] },
  { name: 'glewlwyd', debian: ['glewlwyd', 'sqlite3'], check: hasGlewlwyd },
  { name: 'go', debian: ['golang-go'], check: ['go', 'version'] },
  { name: 'h2load', debian: ['nghttp2-client'], check: ['h2load', '--version'] },
  { name: 'haproxy', debian: ['haproxy'], check: ['haproxy', '-v'] },
  { name: 'helm', fetched: true, check: runs('helm') },
  { name: 'javac', debian: ['default-jdk-headless'], check: ['javac', '-version'] },
  { name: 'jq', debian: ['jq'], check: ['jq', '--version'] },
  { name: 'kubectl', fetched: true, check: runs('kubectl') },
  {
    name: 'Linux',
    support: 'linux',
    check: () => process.platform === 'linux',
    hint: 'they read /proc, or write to /dev/full',
  },
  // With the version of Lua that Debian's mod_lua has.
  { name: 'lua-socket', debian: ['lua-socket'], check: () => existsSync('/usr/share/lua/5.3/socket/http.lua') },
  {
    name: 'mono',
    debian: ['libmono-system-web-mvc3.0-cil', 'mono-fastcgi-server4', 'mono-mcs'],
    check: hasFiles(
      '/usr/bin/fastcgi-mono-server4',
      '/usr/bin/mcs',
      '/usr/lib/mono/4.5/System.Web.Mvc.dll',
      '/usr/lib/mono/4.5/System.Web.Routing.dll',
    ),
  },
  { name: 'nghttp', debian: ['nghttp2-client'], check: ['nghttp', '--version'] },
  { name: 'nghttpd', debian: ['nghttp2-server'], check: ['nghttpd', '--version'] },
  { name: 'nginx', debian: ['nginx-light'], check: ['nginx', '-v'] },
  { name: 'openssl', debian: ['openssl'], check: ['openssl', 'version'] },
  { name: 'php', debian: ['php-cli'], check: ['php', '--version'] },
  { name: 'postgres', support: 'postgres-server', debian: ['postgresql'], check: hasPostgres },
  { name: 'prlimit', debian: ['util-linux'], check: ['prlimit', '--version'] },
  { name: 'prometheus', debian: ['prometheus'], check: ['prometheus', '--version'] },
  { name: 'promtool', support: 'prometheus', debian: ['prometheus'], check: ['promtool', '--version'] },
  { name: 'protoc', debian: ['protobuf-compiler'], check: ['protoc', '--version'] },
  { name: 'puma', debian: ['puma'], check: ['puma', '--version'] },
  // With its library: Debian's `python3-minimal` comes without.
  {
    name: 'python3',
    support: 'python',
    debian: ['python3'],
    check: hasPythonModules('wsgiref.simple_server', 'http.server'),
  },
  { name: 'python3-grpcio', support: 'grpcio', debian: ['python3-grpcio'], check: hasPythonModules('grpc') },
  { name: 'python3-cryptography', debian: ['python3-cryptography'], check: hasPythonModules('cryptography') },
  {
    name: 'Django, Flask, gunicorn and waitress',
    support: 'python-web',
    debian: ['python3-django', 'python3-flask', 'gunicorn', 'python3-waitress'],
    check: hasPythonModules('django', 'flask', 'gunicorn', 'waitress'),
  },
  { name: 'rails', debian: ['ruby-rails', 'puma'], check: ['ruby', '-e', 'require "action_controller/railtie"'] },
  { name: 'redis-cli', debian: ['redis-tools'], check: ['redis-cli', '--version'] },
  { name: 'redis-server', debian: ['redis-server'], check: ['redis-server', '--version'] },
  { name: 'sh', debian: ['dash', 'coreutils', 'sed'], check: ['sh', '-c', tools] },
  {
    name: 'spring',
    debian: ['libspring-web-servlet-java', 'libjetty9-java'],
    check: hasFiles('/usr/share/java/spring3-web.servlet.jar', '/usr/share/java/jetty9-servlet.jar'),
  },
  // Its programs alone: no system has to be booted with it.
  { name: 'systemd-analyze', support: 'systemd', debian: ['systemd'], check: ['systemd-analyze', '--version'] },
  { name: 'zsh', debian: ['zsh'], check: ['zsh', '--version'] },
];

/** Whether the program is there, and runs. */
export async function isThere({ check }) {
  return typeof check === 'function' ? check() : (await run(...asCommand(check))).code === 0;
}

function asCommand([command, ...args]) {
  return [command, args];
}

async function hasBrowser() {
  return (
    (await run('chromium-headless-shell', ['--version'])).code === 0 ||
    (await run('chromium', ['--version'])).code === 0
  );
}

function hasFiles(...paths) {
  return () => paths.every((path) => existsSync(path));
}

/** Of the Python on the PATH, or of the system's own, which Debian's packages are for. */
function hasPythonModules(...modules) {
  const ask = ['-c', `import ${modules.join(', ')}`];
  return async () => (await run('python3', ask)).code === 0 || (await run('/usr/bin/python3', ask)).code === 0;
}

/** With its examples, which images without documentation lack, and what makes its database. */
async function hasGlewlwyd() {
  const files = ['/usr/bin/glewlwyd', '/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz'];
  return files.every((file) => existsSync(file)) && (await run('sqlite3', ['--version'])).code === 0;
}

async function hasPostgres() {
  const versions = '/usr/lib/postgresql';
  return (
    existsSync(versions) && readdirSync(versions).some((version) => existsSync(`${versions}/${version}/bin/postgres`))
  );
}
