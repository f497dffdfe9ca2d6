/** What the test files that run in one process have in common, and could spoil for one another. */
const signals = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2'];

export function takeState() {
  return {
    cwd: process.cwd(),
    env: { ...process.env },
    exitCode: process.exitCode,
    globals: Object.getOwnPropertyDescriptors(globalThis),
    listeners: Object.fromEntries(signals.map((signal) => [signal, process.listeners(signal)])),
    umask: process.umask(),
  };
}

/** What is no longer as it was, in words; empty where nothing is. It is put back. */
export function restoreState(before) {
  const now = takeState();
  const changed = [];
  const names = Object.keys({ ...before.env, ...now.env }).filter((name) => before.env[name] !== now.env[name]);
  for (const name of names) {
    changed.push(`the variable ${name} of the environment`);
    if (before.env[name] === undefined) delete process.env[name];
    else process.env[name] = before.env[name];
  }
  if (now.cwd !== before.cwd) changed.push('the working folder');
  process.chdir(before.cwd);
  if (now.umask !== before.umask) changed.push('the umask');
  process.umask(before.umask);
  if (now.exitCode !== before.exitCode) changed.push('the exit code');
  process.exitCode = before.exitCode;
  for (const signal of signals) {
    const left = now.listeners[signal].filter((listener) => !before.listeners[signal].includes(listener));
    if (left.length > 0) changed.push(`a listener of ${signal}`);
    for (const listener of left) process.removeListener(signal, listener);
  }
  return [...changed, ...restoreGlobals(before.globals, now.globals)];
}

/** Those that Node.js makes when they are first asked for become values only then, which is no change. */
function restoreGlobals(before, now) {
  const changed = Object.keys(before).filter(
    (name) => 'value' in before[name] && !Object.is(before[name].value, now[name]?.value),
  );
  for (const name of changed) Object.defineProperty(globalThis, name, before[name]);
  return changed.map((name) => `globalThis.${name}`);
}
