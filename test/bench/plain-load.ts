/**
 * Load where `wrk` is missing, as a process of its own:
 *
 *   node plain-load.js PLAN URL SECONDS CONNECTIONS
 *
 * With 0 seconds it uses each path and token once. Prints its result as JSON.
 */
import { readFileSync } from 'node:fs';
import { runClosedLoop } from './closed-loop.js';
import type { RequestPlan } from './request-plan.js';

const [planFile = '', url = '', seconds = '1', connections = '1'] = process.argv.slice(2);
const { method, paths, tokens, bodyBytes } = JSON.parse(readFileSync(planFile, 'utf8')) as RequestPlan;
const body = Buffer.alloc(bodyBytes, 'x');
const once = Math.max(paths.length, tokens.length);

const result = await runClosedLoop({
  connections: Number(connections),
  next: (sent, elapsedMs) => {
    if (Number(seconds) === 0 ? sent >= once : elapsedMs >= Number(seconds) * 1000) return null;
    const token = tokens[sent % Math.max(1, tokens.length)];
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(bodyBytes === 0 ? {} : { 'content-type': 'application/octet-stream', 'content-length': bodyBytes }),
    };
    return { url: `${url}${paths[sent % paths.length] ?? '/'}`, options: { method, headers }, body };
  },
});
process.stdout.write(JSON.stringify(result));
