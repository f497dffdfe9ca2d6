/**
 * Stands in for tap where a test file is run once for each mutant: the same comparisons, a fifth of the time to load,
 * and the first failure ends the process. A file that needs more of tap than this fails without any mutant, and the run
 * says so.
 */
import { inspect } from 'node:util';
import { match, same, strict } from 'tcompare';

const idleMs = 100;
let begun = 0;
let ended = 0;

function fail(what) {
  process.stderr.write(`${what}\n`);
  process.exit(1);
}

function hold(right, ...values) {
  if (!right) fail(new Error(values.map((value) => inspect(value)).join(' ')).stack);
  return right;
}

/**
 * What a file opened for all of its tests keeps the process alive: it is closed when no test has been left over for a
 * while.
 */
function whenIdle() {
  if (ended === begun) setTimeout(() => ended === begun && endRoot(), idleMs).unref();
}

function createTest() {
  const teardowns = [];
  const before = [];
  let queue = Promise.resolve();
  let onEnd = () => undefined;
  const isEnded = new Promise((resolve) => (onEnd = resolve));
  const t = {
    test: (name, ...rest) => {
      const body = rest.at(-1);
      begun += 1;
      queue = queue.then(async () => {
        const child = createTest();
        for (const each of before) await each();
        try {
          const result = body(child.t);
          await (result instanceof Promise ? result : child.isEnded);
          await child.done();
        } catch (error) {
          fail(error?.stack ?? error);
        }
        ended += 1;
        whenIdle();
      });
      return queue;
    },
    equal: (a, b, ...more) => hold(Object.is(a, b) || a === b, a, b, ...more),
    not: (a, b, ...more) => hold(a !== b, a, b, ...more),
    ok: (a, ...more) => hold(Boolean(a), a, ...more),
    notOk: (a, ...more) => hold(!a, a, ...more),
    same: (a, b, ...more) => hold(same(a, b).match, a, b, ...more),
    strictSame: (a, b, ...more) => hold(strict(a, b).match, a, b, ...more),
    match: (a, b, ...more) => hold(match(a, b).match, a, b, ...more),
    notMatch: (a, b, ...more) => hold(!match(a, b).match, a, b, ...more),
    doesNotThrow: (body) => hold(!throws(body)),
    throws: (body) => hold(throws(body)),
    rejects: async (promise, expected = {}) => {
      const error = await promise.then(
        () => fail(new Error('did not reject').stack),
        (reason) => reason,
      );
      return hold(match(error, expected).match, error, expected);
    },
    type: (a, type) => hold(typeof type === 'string' ? typeof a === type : a instanceof type, a, type),
    fail: (...more) => hold(false, ...more),
    pass: () => true,
    comment: () => undefined,
    setTimeout: () => undefined,
    teardown: (task) => void teardowns.unshift(task),
    beforeEach: (task) => void before.push(task),
    end: () => onEnd(),
  };
  const done = async () => {
    await queue;
    for (const task of teardowns) await task();
  };
  return { t, isEnded, done };
}

function throws(body) {
  try {
    body();
    return false;
  } catch {
    return true;
  }
}

const root = createTest();
const { t } = root;
let isDone = false;
const endRoot = () => {
  if (isDone) return;
  isDone = true;
  void root.done();
};
process.once('beforeExit', endRoot);
process.once('exit', () => {
  if (begun === 0 || ended < begun) process.exitCode = 1;
});

export { t as default };
