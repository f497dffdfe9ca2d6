/** A receiving service of somebody else's make, as a process that listens on a port it is given. */
import { connect } from 'node:net';
import { once } from 'node:events';
import { freePort } from './listening.js';
import { startProgram } from './program.js';
import type { Scope } from './scope.js';
import { until } from './until.js';

export interface UpstreamCommand {
  readonly command: string;
  /** Its arguments, given `127.0.0.1:PORT`. */
  readonly args: (address: string) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts it, waits until it takes connections, and returns its port. It ends with the test. */
export async function startUpstreamProcess(t: Scope, { command, args, env = {} }: UpstreamCommand): Promise<number> {
  const port = await freePort();
  const program = startProgram(t, command, args(`127.0.0.1:${String(port)}`), { env, signal: 'SIGTERM' });
  await until(`${command} listens`, async () => {
    if (!program.isRunning()) throw new Error(`${command} ended:\n${program.complaints()}`);
    return isOpen(port);
  });
  return port;
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
