import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a load sends. Paths and tokens are used in turn, each from its first again after its last. */
export interface RequestPlan {
  readonly method: 'GET' | 'POST';
  readonly paths: readonly string[];
  /** Empty: no credential is sent. */
  readonly tokens: readonly string[];
  readonly bodyBytes: number;
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
  writeFileSync(script, scriptOf(plan, lists));
  return { json, script };
}

/** Requests are put together before the load begins; where all are alike `wrk` does that by itself. */
function scriptOf({ method, paths, tokens, bodyBytes }: RequestPlan, files: { readonly paths: string; readonly tokens: string }): string {
  const count = Math.max(paths.length, tokens.length);
  const lines = [
    `wrk.method = '${method}'`,
    ...(bodyBytes === 0 ? [] : [`wrk.body = string.rep('x', ${String(bodyBytes)})`, 'wrk.headers[\'Content-Type\'] = \'application/octet-stream\'']),
    'local paths, tokens = {}, {}',
    `for line in io.lines('${files.paths}') do paths[#paths + 1] = line end`,
    `for line in io.lines('${files.tokens}') do tokens[#tokens + 1] = line end`,
    'wrk.path = paths[1]',
    'if #tokens > 0 then wrk.headers[\'Authorization\'] = \'Bearer \' .. tokens[1] end',
  ];
  if (count > 1) {
    lines.push(
      // Runs begin anywhere, so that short ones use all of the list between them.
      'math.randomseed(os.time())',
      `local requests, last = {}, math.random(${String(count)})`,
      'function init()',
      `  for i = 0, ${String(count - 1)} do`,
      '    if #tokens > 0 then wrk.headers[\'Authorization\'] = \'Bearer \' .. tokens[i % #tokens + 1] end',
      '    requests[i + 1] = wrk.format(nil, paths[i % #paths + 1])',
      '  end',
      'end',
      'function request()',
      '  last = last % #requests + 1',
      '  return requests[last]',
      'end',
    );
  }
  return `${lines.join('\n')}\n`;
}
