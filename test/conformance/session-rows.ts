/** Routes that accept service tokens, sessions or both, and requests to them. */
import type { Test } from 'tap';
import type { SessionService } from '../support/session-service.js';
import type { ConfigTree, ProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, refusals } from './refusals.js';

/** A config for the sessions of this service. */
export function sessionConfig(service: SessionService, over: ConfigTree = {}, sessions: ConfigTree = {}): ConfigTree {
  const common = { subjects: ['checkout'], permissions: ['orders:write'] };
  return {
    issuers: { core: { jwks_url: `${service.coreUrl}/auth/jwt/jwks.json` } },
    sessions: {
      core_url: service.coreUrl,
      api_key: `\${file:${service.apiKeyFile}}`,
      api_domain: 'https://api.example.com',
      ...sessions,
    },
    store: { memory: {} },
    routes: [
      { ...common, name: 'services', methods: ['GET', 'POST'], path: '/services', idempotency: 'none' },
      {
        ...common,
        name: 'both',
        methods: ['GET', 'POST'],
        path: '/both',
        accept: ['service', 'session'],
        idempotency: 'none',
        session: { claims: { 'st-role.v': 'support' } },
      },
      {
        name: 'users',
        methods: ['GET', 'POST', 'HEAD', 'OPTIONS', 'PURGE'],
        path: '/users',
        accept: ['session'],
        session: { claims: {} },
        idempotency: 'none',
      },
      {
        name: 'raw',
        methods: ['GET'],
        path: '/raw',
        accept: ['session'],
        session: { claims: {}, forward_tokens: true },
        forward_authorization: true,
      },
      {
        ...common,
        name: 'payments',
        methods: ['POST'],
        path: '/payments',
        accept: ['service', 'session'],
        idempotency: 'required',
        session: { claims: { tId: 'public' } },
      },
      { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
    ],
    ...over,
  };
}

export type Fields = readonly (readonly [string, string])[];

export function bearer(value: string): Fields {
  return [['Authorization', `Bearer ${value}`]];
}

export function cookie(value: string): Fields {
  return [['Cookie', `theme=dark; sAccessToken=${value}; sFrontToken=eyJ1aWQiOiJ1c2VyLTEifQ`]];
}

export const rid: Fields = [['rid', 'anti-csrf']];

export const unauthorised = '{"message":"unauthorised"}';
export const tryRefresh = '{"message":"try refresh token"}';

export interface Row {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly fields: Fields;
  /** Reason in the log, or `null` for 200. */
  readonly reason: string | null;
  /** Of the answer, where it is not the 401 of everybody. */
  readonly body?: string;
  readonly status?: number;
}

let asked = 0;

/** Asks them all at once, so that what one is told cannot depend on the one before. */
export async function checkRows(t: Test, on: ProxyProcess, rows: readonly Row[]): Promise<void> {
  await Promise.all(
    rows.map(async ({ name, method = 'GET', path, fields, reason, body, status = 401 }) => {
      asked += 1;
      const id = `row-${String(asked)}`;
      const response = await on.request({ method, path, headers: [...fields, ['X-Request-Id', id]] });
      const isForwarded = on.receiver.requests.some((request) => request.field('x-request-id').includes(id));
      t.equal(isForwarded, reason === null, `${name}: ${reason === null ? 'forwarded' : 'the receiver hears nothing'}`);
      if (reason === null) {
        t.equal(response.status, 200, name);
        return;
      }
      if (body === undefined && status === 401) checkRefusal(t, response, refusals.unauthorized, name);
      else t.match(response, { status, text: body ?? /./ }, name);
      t.match(await on.logOf(id), { reason, decision: status >= 500 ? 'failed' : 'denied' }, name);
    }),
  );
}
