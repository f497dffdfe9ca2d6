/** Asks a proxy in front as its clients do, without a credential: what is protected has to be 401 there. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { CompiledConfig } from '../../../../config/types.js';
import { encodeSegment } from '../../../../decision/http/request-target.js';
import type { RoutePath } from '../../../../decision/route/policy.js';
import { placeOf } from '../../../../decision/route/route-table.js';
import { networkFailure } from '../../../../lib/errors.js';
import { accept, refuse, type Result } from '../../../../lib/result.js';
import { version } from '../../../../version.js';
import { ok, problem, unreachable, type Finding } from '../finding.js';
import type { FrontSetting } from './settings.js';

const subject = 'front';

/** How long one answer may take; milliseconds. */
const limitMs = 5_000;

/** So many routes are asked for, one after the other: nothing of a front is worn out by that. */
const maxAsked = 200;

type Shown = NonNullable<FrontSetting['shownBy']>;

export interface FrontAnswers {
  readonly findings: readonly Finding[];
  /** Which questions were answered as they have to be. */
  readonly shown: ReadonlySet<Shown>;
}

/** A path of the policy, spelt out. */
interface Sample {
  readonly route: string;
  /** As a request has it. */
  readonly path: string;
}

/** Sends GETs alone, which ask for nothing to be done, and no credential. */
export async function askFront(front: string, config: CompiledConfig): Promise<FrontAnswers> {
  const { closed, open } = samplesOf(config);
  const findings: Finding[] = [];
  const shown = new Set<Shown>();
  const [first] = closed;
  if (first === undefined) {
    return { findings: [problem(subject, 'no route to ask for: none is protected', 'leave out --front')], shown };
  }
  const passed: string[] = [];
  for (const { route, path } of closed.slice(0, maxAsked)) {
    const answer = await get(front, path, {});
    if (!answer.ok) {
      return { findings: [unreachable(subject, `${front}: ${answer.error}`, 'correct --front, or start it')], shown };
    }
    if (answer.value !== 401) passed.push(`${JSON.stringify(route)}: GET ${path} was ${String(answer.value)}`);
  }
  if (passed.length === 0) {
    shown.add('asked');
    findings.push(ok(subject, `${front} asks about every protected route: 401 without a credential`));
  } else {
    findings.push(
      problem(
        subject,
        `without a credential not 401, as Sallyport would have it: ${passed.join('; ')}`,
        'see that it asks about every request (docs/decide.md)',
      ),
    );
  }
  if (open === null) return { findings, shown };
  const told = await get(front, first.path, asIfFor(open.path));
  if (told.ok && told.value >= 400 && told.value < 404) {
    shown.add('described');
    findings.push(ok(subject, 'a client cannot describe its own request'));
  } else {
    findings.push(
      problem(
        subject,
        `a client describes its own request: GET ${first.path} that says it is for ${open.path} was ${told.ok ? String(told.value) : told.error}`,
        'have it overwrite the headers that describe a request (Traefik: trustForwardHeader: false)',
      ),
    );
  }
  return { findings, shown };
}

/** What every form describes a request with. */
function asIfFor(path: string): Record<string, string> {
  return {
    'X-Original-URI': path,
    'X-Original-Method': 'GET',
    'X-Forwarded-Uri': path,
    'X-Forwarded-Method': 'GET',
  };
}

/** One path of each route that nobody may have without a credential, and one that everybody may. */
function samplesOf({ table, routes }: CompiledConfig): {
  readonly closed: readonly Sample[];
  readonly open: Sample | null;
} {
  const samples = routes.flatMap(({ name, paths }) => paths.map((path) => ({ name, segments: spelt(path) })));
  const placed = samples.map(({ name, segments }) => {
    const route = placeOf(table, 'GET', segments)?.route ?? null;
    return {
      route: name,
      path: `/${segments.map(encodeSegment).join('/')}`,
      access: route?.access ?? 'protected',
      mode: route?.mode ?? 'enforce',
    };
  });
  return {
    closed: placed.filter(({ access, mode }) => access === 'protected' && mode === 'enforce'),
    open: placed.find(({ access }) => access === 'public') ?? null,
  };
}

/** Decoded segments. */
function spelt({ segments }: RoutePath): readonly string[] {
  return segments.map((segment) => (segment.kind === 'literal' ? segment.text : 'sallyport-doctor'));
}

/** The status of the answer. */
function get(origin: string, path: string, headers: Record<string, string>): Promise<Result<number, string>> {
  return new Promise((resolve) => {
    const { protocol, hostname, port } = new URL(origin);
    const send = protocol === 'https:' ? requestHttps : requestHttp;
    const asked = send(
      {
        host: hostname.replace(/^\[|\]$/g, ''),
        port,
        path,
        headers: { 'User-Agent': `sallyport-doctor/${version}`, ...headers },
        agent: false,
        timeout: limitMs,
      },
      (response) => {
        response.resume();
        resolve(accept(response.statusCode ?? 0));
        response.destroy();
      },
    );
    asked.on('timeout', () => {
      resolve(refuse(`no answer within ${String(limitMs)} ms`));
      asked.destroy();
    });
    asked.on('error', (error) => resolve(refuse(networkFailure(error))));
    asked.end();
  });
}
