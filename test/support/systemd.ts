/**
 * Unit files of systemd: what its own programs say of one, and a process under those of its restrictions that need
 * neither root nor systemd.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { python } from './python.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

export interface Analysis {
  readonly code: number | null;
  readonly output: string;
}

/** `systemd-analyze` about a unit file. */
export function analyze(t: Scope, verb: 'verify' | 'security', name: string, unit: string): Analysis {
  const file = join(tempDir(t), name);
  writeFileSync(file, unit);
  const options = verb === 'security' ? ['--offline=true'] : ['--man=no'];
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['--no-pager', verb, ...options, file], {
    encoding: 'utf8',
  });
  return { code: status, output: `${stdout}${stderr}` };
}

/** The values of a key, in order. */
export function settingsOf(unit: string, key: string): readonly string[] {
  return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);
}

/** Names of system calls that `SystemCallFilter=` leaves: the first line allows, and those with `~` take away. */
export function allowedCalls(unit: string): readonly string[] {
  const [allowed = [], ...taken] = settingsOf(unit, 'SystemCallFilter').map((line) =>
    line.replace(/^~/, '').split(' ').flatMap(callsOf),
  );
  const denied = new Set(taken.flat());
  return [...new Set(allowed)].filter((name) => !denied.has(name));
}

/** A name, or the names of a set and of the sets in it, as this systemd has them. */
function callsOf(name: string): readonly string[] {
  if (!name.startsWith('@')) return [name];
  const { stdout } = spawnSync('systemd-analyze', ['--no-pager', 'syscall-filter', name], { encoding: 'utf8' });
  return stdout
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap(callsOf);
}

/**
 * Becomes a command that may make only these system calls and open only sockets of these families, as systemd has the
 * kernel see to it.
 */
const program = `
import ctypes, json, os, socket, sys

class Comparison(ctypes.Structure):
    _fields_ = [('argument', ctypes.c_uint), ('operator', ctypes.c_int), ('first', ctypes.c_uint64), ('second', ctypes.c_uint64)]

ALLOW, REFUSE, EQUAL = 0x7fff0000, 0x00050001, 4
rules = json.loads(sys.argv[1])
seccomp = ctypes.CDLL('libseccomp.so.2')
seccomp.seccomp_init.restype = ctypes.c_void_p
calls = ctypes.c_void_p(seccomp.seccomp_init(REFUSE))

def allow(name, comparisons=()):
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        given = (Comparison * len(comparisons))(*comparisons)
        if seccomp.seccomp_rule_add_array(calls, ALLOW, number, len(comparisons), given) != 0:
            sys.exit('no rule for ' + name)

for name in rules['calls']:
    if name != 'socket':
        allow(name)
for family in rules['families']:
    allow('socket', [Comparison(0, EQUAL, getattr(socket, family), 0)])
# It sets no_new_privs too, without which nobody but root may do this.
if seccomp.seccomp_load(calls) != 0:
    sys.exit('the filter was not taken')
os.execv(sys.argv[2], sys.argv[2:])
`;

/** For `startServe`: runs under the unit's `SystemCallFilter=`, `RestrictAddressFamilies=` and `NoNewPrivileges=`. */
export function restrictedBy(unit: string, calls = allowedCalls(unit)): readonly string[] {
  const families = settingsOf(unit, 'RestrictAddressFamilies').flatMap((line) => line.split(' '));
  return [...python(program), JSON.stringify({ calls, families })];
}
