/** A host whose clock jumps and whose name service fails, as a process sees it that was started on it. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

interface HostFault {
  /** So far the wall clock is off. */
  readonly offByMs: number;
  /** Names that cannot be looked up now; every other one is this machine. */
  readonly unknownNames: readonly string[];
}

export interface FaultyHost {
  /** For the environment of a process that is to run on it. */
  readonly env: Readonly<Record<string, string>>;
  /** Takes effect within a moment. */
  readonly set: (fault: Partial<HostFault>) => void;
}

const variable = 'SALLYPORT_TEST_FAULTY_HOST';
const lookEveryMs = 20;

export function createFaultyHost(t: Scope): FaultyHost {
  const path = join(tempDir(t), 'fault.json');
  const set: FaultyHost['set'] = (fault) => {
    writeFileSync(`${path}.next`, JSON.stringify({ offByMs: 0, unknownNames: [], ...fault }));
    renameSync(`${path}.next`, path);
  };
  set({});
  return { env: { [variable]: path, NODE_OPTIONS: `--import=${import.meta.url}` }, set };
}

type LookedUp = (
  error: Error | null,
  address?: string | { address: string; family: number }[],
  family?: number,
) => void;

/** Runs in the process that is started on it: before anything of ours is loaded there. */
function applyFaults(path: string): void {
  let fault: HostFault = { offByMs: 0, unknownNames: [] };
  const look = (): void => {
    fault = JSON.parse(readFileSync(path, 'utf8')) as HostFault;
  };
  look();
  setInterval(look, lookEveryMs).unref();
  const now = Date.now.bind(Date);
  Date.now = () => now() + fault.offByMs;
  // What `net` and everything above it asks: not a copy of it.
  const dns = createRequire(import.meta.url)('node:dns') as { lookup: unknown };
  const lookup = dns.lookup as (name: string, options: unknown, done: LookedUp) => void;
  dns.lookup = (name: string, options: { all?: boolean }, done: LookedUp): void => {
    if (fault.unknownNames.includes(name)) {
      setImmediate(done, Object.assign(new Error('no such name'), { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }));
    } else if (!name.endsWith('.test')) lookup(name, options, done);
    else if (options.all === true) setImmediate(done, null, [{ address: '127.0.0.1', family: 4 }]);
    else setImmediate(done, null, '127.0.0.1', 4);
  };
}

const here = process.env[variable];
if (here !== undefined && process.argv[1] !== fileURLToPath(import.meta.url)) applyFaults(here);
