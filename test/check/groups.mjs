/** Which test files need no process, no program and no server of their own, and which of those share a process. */
import { importsOf, loadedBy } from './imports.mjs';
import { needsOf } from './needs.mjs';

const startsProcesses = ['child_process', 'cluster', 'worker_threads'];
const opensSockets = ['dgram', 'http', 'http2', 'https', 'net', 'tls'];
/** Packages that are imported in a test to serve, or to call, something. */
const speaking = ['express', 'fastify', 'ioredis', 'pg', 'undici', 'ws'];

/** What a test file imports that cannot stand its process being shared says so by importing this. */
const alone = 'test/support/own-process.ts';

/** A test file that searches for long says so by importing this. */
const campaign = 'test/support/campaign.ts';

/**
 * Of these test files, those that start no process and no program and open no socket: neither they nor the helpers that
 * they load import what does. What they load of `src` may be able to. Campaigns are none, for they take too long.
 */
export function unitTestsOf(files) {
  const needing = new Set(needsOf(files).flatMap((need) => need.files));
  return files.filter((file) => !needing.has(file) && isUnit(file));
}

function isUnit(file) {
  const loaded = [...loadedBy(file)];
  return (
    !loaded.includes(campaign) &&
    !loaded.some((one) => imports(one, startsProcesses)) &&
    !loaded.filter((one) => one.startsWith('test/')).some((one) => imports(one, [...opensSockets, ...speaking]))
  );
}

/**
 * Of these unit tests, those that may run one after the other in one process: they use tap, and do not ask for a
 * process of their own.
 */
export function sharingOf(files) {
  return files.filter((file) => importsOf(file).packages.includes('tap') && !loadedBy(file).has(alone));
}

function imports(file, names) {
  return importsOf(file).packages.some((name) => names.includes(name.replace(/^node:/, '').replace(/(?<=\w)\/.*/, '')));
}
