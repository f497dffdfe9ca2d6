/** Callers that know no tokens and no keys: a shell script with curl, and `node:http`. */
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { curl } from '../support/curl.js';
import { runToEnd } from '../support/program.js';
import { projectDir } from '../support/project-dir.js';
import { sh } from '../support/sh.js';
import type { CallerAnswer, TargetName, Write } from './egress-ledger.js';

const script = join(projectDir, 'test/chaos/egress-caller.sh');

/** curl's CURLE_COULDNT_CONNECT. */
const couldNotConnect = 7;

/** Before each write by `node:http`: else writes that fail at once would be most of them. */
const longestPauseMs = 400;

export interface Caller {
  /** Of the calling side. */
  readonly port: number;
  readonly target: TargetName;
  /** Of the ids of its writes. */
  readonly prefix: string;
  readonly count: number;
  readonly onWrite: (write: Write) => void;
}

function pathOf(target: TargetName): string {
  return `/${target}/v1/writes`;
}

/** So many writes, one after the other, by {@link curl} in a shell. */
export async function callByShell({ port, target, prefix, count, onWrite }: Caller): Promise<void> {
  const url = `http://127.0.0.1:${String(port)}${pathOf(target)}`;
  const { code, stdout, stderr } = await runToEnd(sh, [script, url, prefix, String(count)]);
  if (code !== 0) throw new Error(`${curl} in a shell ended with ${String(code)}: ${stderr}`);
  for (const line of stdout.trimEnd().split('\n')) {
    const [id = '', status = '', exit = '', attempts = '', ...rest] = line.split(' ');
    const failure = exit === '0' ? null : Number(exit) === couldNotConnect ? 'refused' : 'broken';
    const answer: CallerAnswer = {
      status: failure === null ? Number(status) : null,
      proxyStatus: rest.join(' '),
      failure,
      attempts: Number(attempts),
    };
    onWrite({ id, target, caller: 'curl', answer });
  }
}

/** The same by `node:http`, each over a connection of its own. */
export async function callByNode({ port, target, prefix, count, onWrite }: Caller): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const id = `${prefix}-${String(number)}`;
    await sleep(Math.random() * longestPauseMs);
    const answer = await ask(port, pathOf(target), id);
    if (answer.failure === 'refused') await sleep(1_000);
    onWrite({ id, target, caller: 'node', answer });
  }
}

async function ask(port: number, path: string, id: string): Promise<CallerAnswer> {
  const noAnswer = (failure: 'refused' | 'broken'): CallerAnswer => ({
    status: null,
    proxyStatus: '',
    failure,
    attempts: 0,
  });
  return new Promise((resolve) => {
    const headers = { 'Content-Type': 'application/json' };
    const sent = request({ host: '127.0.0.1', port, method: 'POST', path, headers, agent: false, timeout: 20_000 });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', (error: NodeJS.ErrnoException) =>
      resolve(noAnswer(error.code === 'ECONNREFUSED' ? 'refused' : 'broken')),
    );
    sent.on('response', (response) => {
      response.on('error', () => resolve(noAnswer('broken')));
      response.resume().on('end', () => {
        const { 'proxy-status': proxyStatus = '', 'x-sallyport-attempts': attempts = '0' } = response.headers;
        resolve({
          status: response.statusCode ?? null,
          proxyStatus: String(proxyStatus),
          failure: null,
          attempts: Number(attempts),
        });
      });
    });
    // In two pieces, so that there is something between to be cut.
    sent.write(`{"id":"${id}",`);
    setImmediate(() => sent.end('"note":"written by node"}'));
  });
}
