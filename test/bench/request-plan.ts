import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenFile } from './token-file.js';

/** What a load sends. Paths and tokens are used in turn, each from its first again after its last. */
export interface RequestPlan {
  readonly method: 'GET' | 'POST';
  readonly paths: readonly string[];
  /** Empty: no credential is sent, unless there is a file of them. */
  readonly tokens: readonly string[];
  readonly bodyBytes: number;
  /** More tokens than can be held, for the first of the paths. */
  readonly tokenFile?: TokenFile;
  /**
   * Number of the token of the file that is first, and those behind it follow; each is drawn by chance unless given.
   */
  readonly tokensFrom?: number;
  /**
   * Requests a second over all connections, fewer where answers are late; as many as there is time for unless given.
   */
  readonly perSecond?: number;
}

/** `GET /orders` with this token. */
export function planOf(token: string): RequestPlan {
  return { method: 'GET', paths: ['/orders'], tokens: [token], bodyBytes: 0 };
}

/** A plan as files: JSON for the loader of our own, a script for `wrk`. */
export interface PlanFiles {
  readonly json: string;
  readonly script: string;
}

export function writePlan(dir: string, plan: RequestPlan): PlanFiles {
  const json = join(dir, 'plan.json');
  const script = join(dir, 'plan.lua');
  const lists = { paths: join(dir, 'paths'), tokens: join(dir, 'tokens') };
  writeFileSync(json, JSON.stringify(plan));
  writeFileSync(lists.paths, plan.paths.map((path) => `${path}\n`).join(''));
  writeFileSync(lists.tokens, plan.tokens.map((token) => `${token}\n`).join(''));
  writeFileSync(script, `${scriptOf(plan, lists).join('\n')}\n`);
  return { json, script };
}

function scriptOf(plan: RequestPlan, lists: { readonly paths: string; readonly tokens: string }): readonly string[] {
  const { method, paths, tokens, bodyBytes, tokenFile, tokensFrom = null, perSecond } = plan;
  const count = Math.max(paths.length, tokens.length);
  return [
    `wrk.method = '${method}'`,
    ...(bodyBytes === 0
      ? []
      : [
          `wrk.body = string.rep('x', ${String(bodyBytes)})`,
          "wrk.headers['Content-Type'] = 'application/octet-stream'",
        ]),
    'local paths, tokens = {}, {}',
    `for line in io.lines('${lists.paths}') do paths[#paths + 1] = line end`,
    `for line in io.lines('${lists.tokens}') do tokens[#tokens + 1] = line end`,
    'wrk.path = paths[1]',
    "if #tokens > 0 then wrk.headers['Authorization'] = 'Bearer ' .. tokens[1] end",
    // Runs begin anywhere, so that short ones use all of the list between them.
    'math.randomseed(os.time())',
    ...(tokenFile !== undefined ? readingTokens(tokenFile, tokensFrom) : count > 1 ? preparedRequests(count) : []),
    ...(perSecond === undefined ? [] : atRate(perSecond)),
  ];
}

/** Requests are put together before the load begins; where all are alike `wrk` does that by itself. */
function preparedRequests(count: number): readonly string[] {
  return [
    `local requests, last = {}, math.random(${String(count)})`,
    'function init()',
    `  for i = 0, ${String(count - 1)} do`,
    "    if #tokens > 0 then wrk.headers['Authorization'] = 'Bearer ' .. tokens[i % #tokens + 1] end",
    '    requests[i + 1] = wrk.format(nil, paths[i % #paths + 1])',
    '  end',
    'end',
    'function request()',
    '  last = last % #requests + 1',
    '  return requests[last]',
    'end',
  ];
}

/** A million requests would not fit into the memory that `wrk` has for them. */
function readingTokens({ path, tokenBytes, count }: TokenFile, from: number | null): readonly string[] {
  return [
    `local file, last = assert(io.open('${path}', 'rb')), ${String(from ?? 0)}`,
    'local head, tail',
    'function init()',
    "  wrk.headers['Authorization'] = 'Bearer @'",
    "  head, tail = wrk.format():match('^(.*)@(.*)$')",
    'end',
    'function request()',
    from === null ? `  last = math.random(0, ${String(count - 1)})` : `  last = (last + 1) % ${String(count)}`,
    `  file:seek('set', last * ${String(tokenBytes + 1)})`,
    `  return head .. file:read(${String(tokenBytes)}) .. tail`,
    'end',
  ];
}

/** Each request has its time; those that are late are sent at once. */
function atRate(perSecond: number): readonly string[] {
  return [
    "local ffi = require('ffi')",
    'ffi.cdef[[ typedef struct { long s; long ns; } moment; int clock_gettime(int, moment *); ]]',
    "local moment, planned = ffi.new('moment'), nil",
    'function delay()',
    '  ffi.C.clock_gettime(1, moment)',
    '  local now = tonumber(moment.s) * 1000 + tonumber(moment.ns) / 1000000',
    `  planned = (planned or now) + ${String(1000 / perSecond)}`,
    '  return math.max(0, math.floor(planned - now + 0.5))',
    'end',
  ];
}
