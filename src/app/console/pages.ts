/** The pages behind the console: the page itself, and what it reads. All of them only tell. */
import { accessOf } from '../../admin/console/access.js';
import type { RefusedRequest, RefusedRequests } from '../../admin/console/refusals.js';
import type { CreatePage, Page } from '../../admin/server.js';
import type { Traffic } from '../../ports/observability.js';
import type { Clock } from '../../ports/system.js';
import type { DoubtfulWrite } from '../store/doubtful-writes.js';
import type { Reservations } from '../store/store.js';
import type { Policy } from './questions.js';

interface ConsoleSources {
  /** What is in force. */
  readonly policy: () => Policy;
  readonly refused: RefusedRequests;
  readonly traffic: () => Traffic;
  readonly inDoubt: Reservations['inDoubt'];
  readonly clock: Clock;
}

/** What `/console/state` answers. */
export interface ConsoleState {
  /** Milliseconds since the epoch. */
  readonly at_ms: number;
  readonly traffic: Traffic;
  /** Those that came after the one that was named, the newest first. */
  readonly refusals: readonly RefusedRequest[];
  /** Writes of this process that are in doubt, the oldest first. */
  readonly in_doubt: readonly { readonly record: string; readonly age_s: number }[];
}

/** As many as a page can show. */
export const mostInDoubt = 50;

/** The pages by their path. What answers questions is loaded when the first one is asked. */
export function createConsolePages(sources: ConsoleSources): Readonly<Record<string, CreatePage>> {
  const { policy, refused, traffic, inDoubt, clock } = sources;
  return {
    '/': async () => {
      const { html, csp } = await import('../../built/console.js');
      return {
        status: 200,
        type: 'text/html; charset=utf-8',
        body: html,
        headers: {
          'content-security-policy': csp,
          'referrer-policy': 'no-referrer',
          'x-frame-options': 'DENY',
          'cross-origin-opener-policy': 'same-origin',
          'permissions-policy': 'camera=(), geolocation=(), microphone=()',
        },
      };
    },
    '/console/state': (query) => {
      const state: ConsoleState = {
        at_ms: clock.now(),
        traffic: traffic(),
        refusals: refused.after(Number(query.get('after') ?? 0) || 0),
        in_doubt: inDoubt(mostInDoubt).map(shownInDoubt),
      };
      return json(200, state);
    },
    '/console/access': () => json(200, accessOf(policy().config)),
    '/console/explain': async (query) => {
      const questions = await import('./questions.js');
      const id = query.get('refusal');
      if (id !== null) {
        const refusal = refused.find(Number(id));
        if (refusal === null) return forgottenRefusal;
        return json(200, await questions.explainRefusal(refusal, policy(), clock.now()));
      }
      const [method, path] = [query.get('method'), query.get('path')];
      if (method === null || path === null) return json(400, { problem: 'allowed: refusal, or method and path' });
      const given = query.get('claims');
      const claims = given === null ? null : questions.readClaims(given);
      if (claims?.ok === false) return json(400, { problem: claims.error });
      return json(200, await questions.explainRequest(method, path, claims?.value ?? null, policy(), clock.now()));
    },
    '/console/claims': async (query) => {
      const questions = await import('./questions.js');
      const claims = questions.readClaims(query.get('claims') ?? '');
      if (!claims.ok) return json(400, { problem: claims.error });
      const kind = query.get('kind') === 'session' ? 'session' : 'claims';
      return json(200, await questions.tryClaims(kind, claims.value, policy(), clock.now()));
    },
  };
}

/** What is asked about a refusal that is not kept any more. */
export const forgottenRefusal: Page = json(404, { problem: 'this refusal is no longer kept' });

export function shownInDoubt({ recordId, ageMs }: DoubtfulWrite): ConsoleState['in_doubt'][number] {
  return { record: recordId, age_s: Math.round(ageMs / 1000) };
}

export function json(status: number, value: object): Page {
  return { status, type: 'application/json', body: JSON.stringify(value) };
}
