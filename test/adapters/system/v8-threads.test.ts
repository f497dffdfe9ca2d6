import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { v8ThreadNiceness, v8Threads } from '../../../src/adapters/system/v8-threads.js';
import { childrenOf } from '../../support/linux.js';
import { startProxyProcess, type ProxyProcess } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';

t.setTimeout(200_000);

const module = pathToFileURL(join(import.meta.dirname, '../../../src/adapters/system/v8-threads.js')).href;

/** A thread, with the CPU that it took, in nanoseconds, and its niceness, field 19 of its `stat` (proc_pid_stat(5)). */
interface Worked {
  readonly id: number;
  readonly ns: number;
  readonly nice: number;
}

function workedIn(pid: number | 'self'): readonly Worked[] {
  const folder = `/proc/${String(pid)}/task`;
  return readdirSync(folder).map((id) => {
    const stat = readFileSync(`${folder}/${id}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [ns] = readFileSync(`${folder}/${id}/schedstat`, 'utf8').split(' ');
    return { id: Number(id), ns: Number(ns), nice: Number(fields[16]) };
  });
}

const own = workedIn('self').find(({ id }) => id === process.pid)?.nice ?? NaN;
const behind = Math.min(19, own + v8ThreadNiceness);

t.test('whichever thread collects and compiles beside the main one stands behind it, and no other', (t) => {
  const program = `
    import { pbkdf2 } from 'node:crypto';
    import { readFileSync, readdirSync } from 'node:fs';
    import { setTimeout } from 'node:timers/promises';
    import { promisify } from 'node:util';
    ${workedIn.toString()}
    const timesOf = () => new Map(workedIn('self').map(({ id, ns }) => [id, ns]));
    // The threads of libuv are there before, as they are in a program of modules.
    await promisify(pbkdf2)('x', 'y', 1000, 32, 'sha256');
    const { putServingFirstWhenWarm } = await import('${module}');
    putServingFirstWhenWarm(0);
    const niceOf = () => Math.max(...workedIn('self').map(({ nice }) => nice));
    const cold = niceOf();
    while (niceOf() === cold) await setTimeout(50);
    const before = timesOf();
    const kept = [];
    for (let round = 0; round < 400; round += 1) {
      kept[round % 60] = Array.from({ length: 20_000 }, (_, id) => ({ id, text: String(id) }));
    }
    const collecting = timesOf();
    await Promise.all(Array.from({ length: 12 }, () => promisify(pbkdf2)('x', 'y', 200_000, 32, 'sha256')));
    const threads = workedIn('self').map(({ id, ns, nice }) => ({
      isMain: id === process.pid,
      nice,
      collected: collecting.get(id) - before.get(id),
      hashed: ns - collecting.get(id),
    }));
    process.stdout.write(JSON.stringify(threads));
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  t.equal(stderr, '');
  const threads = JSON.parse(stdout) as readonly {
    readonly isMain: boolean;
    readonly nice: number;
    readonly collected: number;
    readonly hashed: number;
  }[];
  const others = threads.filter(({ isMain }) => !isMain);
  t.same(
    threads.filter(({ isMain }) => isMain).map(({ nice }) => nice),
    [own],
  );
  const collected = others.filter((thread) => thread.collected > 1e6 && thread.collected > thread.hashed);
  // What V8 has begun may go on beside the hashes, for some milliseconds; these take some hundred.
  const hashed = others.filter((thread) => thread.hashed > 50e6 && thread.collected < 1e6);
  t.ok(collected.length > 0, 'V8 collected beside the main thread');
  t.ok(hashed.length > 0, 'libuv hashed beside it');
  t.same(new Set(collected.map(({ nice }) => nice)), new Set([behind]));
  t.same(new Set(hashed.map(({ nice }) => nice)), new Set([own]));
  t.equal(others.filter(({ nice }) => nice === behind).length, 4);
  t.end();
});

/** Sends what a caller may not do as fast as the process reads it, over one connection after the other. */
function keepBusy(t: Scope, proxy: ProxyProcess): void {
  const { Authorization = '' } = proxy.authorization({ permissions: [] });
  const requests = `GET /orders HTTP/1.1\r\nHost: orders\r\nAuthorization: ${Authorization}\r\n\r\n`.repeat(50);
  const begin = (): Socket => {
    const begun = connect(proxy.port, '127.0.0.1').resume();
    const send = (): void => {
      while (begun.writable && begun.write(requests));
    };
    begun.on('connect', send).on('drain', send);
    // A connection that has had its number of requests is closed, whatever else is sent on it.
    begun.on('error', () => undefined);
    begun.on('close', () => {
      if (!isOver) socket = begin();
    });
    return begun;
  };
  let isOver = false;
  let socket = begin();
  t.teardown(() => {
    isOver = true;
    socket.destroy();
  });
}

t.test('in what serves they do, in each worker too, once it is warm and not before', async (t) => {
  const countBehind = (pid: number): number => workedIn(pid).filter(({ nice }) => nice === behind).length;
  const proxy = await startProxyProcess(t, {});
  const several = await startProxyProcess(t, { config: { workers: 2 } });
  const workers = childrenOf(several.process.pid);
  t.equal(workers.length, 2);
  const all = [proxy.process.pid, ...workers];
  t.same(all.map(countBehind), [0, 0, 0], 'all that has just started compiles at once');
  for (const each of [proxy, several, several, several, several]) keepBusy(t, each);
  const usedOf = (pid: number): number =>
    workedIn(pid)
      .map(({ ns }) => ns / 1e9)
      .reduce((sum, seconds) => sum + seconds, 0);
  const usedAtMost = new Map(all.map((pid) => [pid, usedOf(pid)]));
  await until(
    'all threads of V8 stand behind',
    () => {
      for (const pid of all) if (countBehind(pid) === 0) usedAtMost.set(pid, usedOf(pid));
      return all.every((pid) => countBehind(pid) === 4);
    },
    180_000,
  );
  t.ok(
    [...usedAtMost.values()].every((seconds) => seconds > 3),
    'not before it has worked for seconds',
  );
});

t.test('none does where V8 was given another number of threads: which are its own is not known then', (t) => {
  const program = `
    import { readFileSync, readdirSync } from 'node:fs';
    import { setTimeout } from 'node:timers/promises';
    ${workedIn.toString()}
    const { putServingFirstWhenWarm } = await import('${module}');
    putServingFirstWhenWarm(0);
    await setTimeout(1_500);
    process.stdout.write(JSON.stringify(workedIn('self').map(({ nice }) => nice)));
  `;
  const { stdout } = spawnSync(process.execPath, ['--v8-pool-size=1', '--input-type=module', '--eval', program], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  t.same(new Set(JSON.parse(stdout) as readonly number[]), new Set([own]));
  t.end();
});

t.test('threads are found by their names, or by their age where they have none', (t) => {
  const name = (...names: readonly string[]): readonly { id: number; name: string }[] =>
    names.map((each, at) => ({ id: 100 + at, name: each }));
  const nameless = name('node', 'node', 'node', 'node', 'node', 'node', 'node', 'node');
  t.same(v8Threads([...nameless].reverse(), '20.20.2', 100), [102, 103, 104, 105]);
  const late = [100, 101, 102, 7, 8, 9, 10, 11].map((id) => ({ id, name: 'node' }));
  t.same(v8Threads(late, '20.0.0', 100), [102, 7, 8, 9], 'where their numbers begin anew');
  t.same(v8Threads(nameless, '24.0.0', 100), [], 'none where that Node.js should have named them');
  t.same(v8Threads(name('node', 'DelayedTaskSche', 'V8Worker', 'libuv-worker', 'V8Worker'), '24.0.0', 100), [102, 104]);
  t.same(v8Threads(name('node', 'V8Worker', 'node', 'node', 'node'), '20.0.0', 100), [101]);
  t.end();
});
