/**
 * Load where `wrk` is missing, as a process of its own:
 *
 *   node plain-load.js PLAN URL SECONDS CONNECTIONS
 *
 * With 0 seconds it uses each path and token once. Prints its result as JSON.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { runClosedLoop } from './closed-loop.js';
import type { RequestPlan } from './request-plan.js';
import { openTokens } from './token-file.js';

const [planFile = '', url = '', seconds = '1', connections = '1'] = process.argv.slice(2);
const {
  method,
  paths,
  tokens,
  bodyBytes,
  tokenFile,
  tokensFrom = null,
  perSecond,
} = JSON.parse(readFileSync(planFile, 'utf8')) as RequestPlan;
const body = Buffer.alloc(bodyBytes, 'x');
const isOnce = Number(seconds) === 0;
const once = Math.max(paths.length, tokens.length, tokenFile?.count ?? 0);

const tokenAt =
  tokenFile === undefined ? (sent: number) => tokens[sent % Math.max(1, tokens.length)] : fromFile(tokenFile);

const result = await runClosedLoop({
  connections: Number(connections),
  ...(perSecond === undefined ? {} : { perSecond }),
  next: (sent, elapsedMs) => {
    if (isOnce ? sent >= once : elapsedMs >= Number(seconds) * 1000) return null;
    const token = tokenAt(sent);
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(bodyBytes === 0 ? {} : { 'content-type': 'application/octet-stream', 'content-length': bodyBytes }),
    };
    return { url: `${url}${paths[sent % paths.length] ?? '/'}`, options: { method, headers }, body };
  },
});
process.stdout.write(JSON.stringify(result));

function fromFile(file: NonNullable<RequestPlan['tokenFile']>): (sent: number) => string {
  const opened = openTokens(file);
  if (!isOnce && tokensFrom === null) return () => opened.at(randomInt(file.count));
  return (sent) => opened.at(((tokensFrom ?? 0) + sent) % file.count);
}
