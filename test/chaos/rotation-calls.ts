/** Who calls while files are replaced: a process that writes, and the service that calls somebody itself. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stopAtEnd } from '../bench/child.js';
import type { Scope } from '../support/scope.js';
import { goFirst } from './load-process.js';
import type { Callee } from './rotation-caller.js';

/** The status of a call that a service makes through its calling side; 0 where there was none. */
export async function callOut(port: number): Promise<number> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path: '/called/it' }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', () => resolve(0));
    });
    sent.on('error', () => resolve(0));
    sent.end();
  });
}

interface WriteSeen {
  /** Milliseconds since the epoch. */
  readonly beganAtMs: number;
  readonly endedAtMs: number;
  /** Of its bearer. */
  readonly place: number;
  /** A status, or why there is none. */
  readonly outcome: string;
}

/** Starts the process that writes; it keeps the rate whatever this one does. */
export async function startCaller(
  t: Scope,
  perSecond: number,
  files: { readonly ca: string; readonly cert: string; readonly key: string },
): Promise<{
  readonly tell: (callee: Callee) => void;
  readonly end: () => Promise<readonly WriteSeen[]>;
}> {
  const args = [join(import.meta.dirname, 'rotation-caller.js'), String(perSecond), files.ca, files.cert, files.key];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  stopAtEnd(t, child);
  await once(child, 'spawn');
  goFirst(child.pid ?? 0);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return {
    tell: (callee) => void child.stdin.write(`${JSON.stringify(callee)}\n`),
    end: async () => {
      // What is under way is over soon, or has failed.
      await sleep(3_000);
      child.kill('SIGKILL');
      return text
        .split('\n')
        .slice(0, -1)
        .map((line): WriteSeen => {
          const [beganAtMs, endedAtMs, place, ...outcome] = line.split(' ');
          return {
            beganAtMs: Number(beganAtMs),
            endedAtMs: Number(endedAtMs),
            place: Number(place),
            outcome: outcome.join(' '),
          };
        });
    },
  };
}
