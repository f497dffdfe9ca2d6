/** A wall clock of its own for a program that is not ours, which a test puts forwards and back while it runs. */
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { compileLibrary } from './gcc.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

export interface SteppedClock {
  /** For the program's start. */
  readonly env: Readonly<Record<string, string>>;
  /** How far the clock is ahead of the machine's from now on; behind, where negative. */
  readonly setAheadMs: (ms: number) => void;
}

/**
 * Loaded before the C library, it answers who asks for the time of day. It asks the kernel, and nothing of the C
 * library, so that an allocator that is not ready yet may ask as well; that is where libfaketime and jemalloc get into
 * each other's way. Clocks that only measure stay as they are.
 */
const source = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *ahead_ns;

__attribute__((constructor)) static void find_offset(void) {
  const char *path = getenv("STEPPED_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *mapped = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) ahead_ns = mapped;
  close(file);
}

int clock_gettime(clockid_t id, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, id, at);
  if (failed || !ahead_ns || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
  long long ns = at->tv_sec * 1000000000LL + at->tv_nsec + *ahead_ns;
  at->tv_sec = ns / 1000000000LL;
  at->tv_nsec = ns % 1000000000LL;
  return 0;
}

int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
`;

/** Linux and gcc are needed. */
export function createSteppedClock(t: Scope): SteppedClock {
  const dir = tempDir(t);
  const path = join(dir, 'ahead');
  writeFileSync(path, Buffer.alloc(8));
  return {
    env: { LD_PRELOAD: compileLibrary(dir, 'stepped-clock', source), STEPPED_CLOCK: path },
    setAheadMs: (ms) => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(Math.round(ms)) * 1_000_000n);
      const file = openSync(path, 'r+');
      writeSync(file, bytes, 0, 8, 0);
      closeSync(file);
    },
  };
}
