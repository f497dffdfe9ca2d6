import type { Denial } from '../../src/decision/denial.js';
import type { Principal } from '../../src/decision/token/principal.js';
import { readHeaders } from '../../src/decision/http/request-headers.js';
import { readTarget } from '../../src/decision/http/request-target.js';
import { nothingStripped } from '../../src/decision/http/stripped-headers.js';
import type { WriteClient } from '../../src/proxy/idempotency/reserved-write.js';
import type { ActiveConfig } from '../../src/proxy/auth/active-config.js';
import type { Admission } from '../../src/proxy/auth/authorize-request.js';

export const routeNames = ['create', 'single', 'reports', 'deduplicates'] as const;

/** What a schedule asks for. */
export interface Ask {
  readonly route: (typeof routeNames)[number];
  readonly subject: 'checkout' | 'migration';
  readonly key: number;
  readonly body: number;
  readonly token: number;
}

/** What a caller was told. */
export type Answer =
  | { readonly kind: 'refused'; readonly reason: Denial['reason'] }
  | { readonly kind: 'given'; readonly status: number; readonly body: string; readonly isReplayed: boolean }
  | { readonly kind: 'streamed'; readonly status: number; body: string; isWhole: boolean };

/** A request that was let through; tokens live longer than any schedule. */
export function admissionOf(
  { id, route: name, subject, key, token }: Ask & { readonly id: string },
  activeConfig: ActiveConfig,
  nowMs: number,
): Admission {
  const route = activeConfig.config.routes.find((candidate) => candidate.name === name);
  const target = readTarget(`/${name}`, 1_000);
  const rawHeaders = [
    'Host',
    'receiver',
    'Idempotency-Key',
    `key-${key}`,
    'Content-Type',
    'text/plain',
    'Transfer-Encoding',
    'chunked',
  ];
  const fields = readHeaders(
    { method: 'POST', target: `/${name}`, httpVersion: '1.1', rawHeaders },
    activeConfig.headerRules,
  );
  if (route === undefined || !target.ok || !fields.ok) throw new Error('a request of a schedule is refused');
  const principal: Principal = {
    kind: 'service',
    issuerName: 'core',
    issuer: 'https://api.example.com',
    subject,
    permissions: ['orders:write'],
    tokenId: `token-${token}`,
    keyId: 'd-1',
    expiresAtS: Math.floor(nowMs / 1000) + 7_200,
    issuedAtS: Math.floor(nowMs / 1000),
  };
  return {
    route,
    target: target.value,
    headers: fields.value,
    principal,
    requestId: id,
    stripped: nothingStripped,
    grpcTimeoutMs: null,
    traceId: null,
    forwarded: ['X-Request-Id', id],
    shadow: null,
    shadowAdmission: () => null,
    revoked: () => null,
  };
}

/** A caller that takes everything at once and keeps the answer. */
export function callerOf(
  asked: { isGone: boolean; answer: Answer | null },
  onAnswer: (answer: Answer) => void,
): WriteClient {
  const take = (answer: Answer): void => {
    asked.answer = answer;
    onAnswer(answer);
  };
  const streamed = (change: (answer: Extract<Answer, { kind: 'streamed' }>) => void): void => {
    if (asked.answer?.kind === 'streamed') change(asked.answer);
  };
  const refuse = ({ reason }: Denial): void => {
    // A streamed answer is broken off.
    if (asked.answer === null) take({ kind: 'refused', reason });
  };
  return {
    isGone: () => asked.isGone,
    refuse,
    refuseUnsent: refuse,
    refuseUnreserved: refuse,
    respond: ({ status, body, isReplayed }) => {
      take({ kind: 'given', status, body: body.toString(), isReplayed });
    },
    onHead: (status) => {
      take({ kind: 'streamed', status, body: '', isWhole: false });
    },
    onData: (chunk) => {
      streamed((answer) => {
        answer.body += chunk.toString();
      });
      return true;
    },
    onEnd: () => {
      streamed((answer) => {
        answer.isWhole = true;
      });
    },
    upstreamAsked: () => undefined,
    upstreamResponded: () => undefined,
    fail: (error) => {
      throw error;
    },
  };
}
