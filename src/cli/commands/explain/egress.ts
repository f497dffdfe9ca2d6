/** What the calling side would do with a request, in words. */
import type { CompiledConfig, EgressSettings, TargetSettings } from '../../../config/types.js';
import type { Denial } from '../../../decision/denial.js';
import { planKey, type KeyPlan } from '../../../decision/egress/key.js';
import { outgoingTarget, targetOf } from '../../../decision/egress/target.js';
import { isGrpc } from '../../../decision/grpc/content-type.js';
import { readMethod } from '../../../decision/http/request-head.js';
import { readTarget } from '../../../decision/http/request-target.js';
import { hasOtherReading } from '../../../decision/route/request-form.js';
import { matchRoute } from '../../../decision/route/route-table.js';
import { isAskedForAsShown } from '../../../app/certificates/target-certificates.js';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import type { PolicyRequest } from '../../../policy-test/simulate/decide.js';

/** What `explain --egress --json` prints. */
interface EgressExplanation {
  readonly allowed: boolean;
  /** Why not; `null` where it is. */
  readonly reason: Denial['reason'] | null;
  /** Name of the target; `null` where none is meant. */
  readonly target: string | null;
  /** Method and URL that go out; `null` where nothing does. */
  readonly sends: { readonly method: string; readonly url: string } | null;
  readonly token: string | null;
  /** Whether the token is bound to a key of the process, which signs a proof for each attempt. */
  readonly dpop: boolean;
  /** What the target is shown in TLS, and whether the token is asked for with the same; `null` where nothing is. */
  readonly certificate: { readonly file: string; readonly asksForToken: boolean } | null;
  readonly key: 'kept' | 'generated' | 'derived' | 'none';
  readonly attempts: number;
}

/** Judges a request as the calling side's listener would. Refuses where the config has none. */
export function explainEgress(
  { egress }: CompiledConfig,
  request: PolicyRequest,
): Result<EgressExplanation, StartFailure> {
  if (egress === null) return refuse(startFailure('invalid', '--egress: the config has no egress'));
  const refused = (reason: Denial['reason'], target: TargetSettings | null): Result<EgressExplanation, never> =>
    accept({
      allowed: false,
      reason,
      target: target?.name ?? null,
      sends: null,
      token: null,
      dpop: false,
      certificate: null,
      key: 'none',
      attempts: 0,
    });
  const method = readMethod(request.method);
  if (method !== null) return refused(method.reason, null);
  const read = readTarget(request.path, egress.listen.maxTargetBytes);
  if (!read.ok) return refused(read.error.reason, null);
  const target = targetOf(egress.targets, request.path);
  if (target === null) return refused('route_unknown', null);
  if (read.value.encodedSlash || read.value.pathParameters) return refused('target_malformed', target);
  if (matchRoute(egress.table, request.method, read.value) === null) {
    const isMisread = hasOtherReading(read.value, request.method, egress.table);
    return refused(isMisread ? 'target_malformed' : 'route_unknown', target);
  }
  // Nothing reserves a stream: calls of gRPC get no key.
  const isCall = isGrpc(headerOf(request, 'content-type'));
  const asked = { method: request.method, idempotencyKey: headerOf(request, 'idempotency-key') };
  const plan = planKey(asked, isCall ? 'pass' : target.missingKey, isCall ? null : target.keyFrom);
  if (!plan.ok) return refused(plan.error.reason, target);
  const token = egress.tokens.find(({ name }) => name === target.token) ?? null;
  return accept({
    allowed: true,
    reason: null,
    target: target.name,
    sends: { method: request.method, url: `${target.upstream.url}${outgoingTarget(target, request.path)}` },
    token: target.token,
    dpop: token !== null && token.kind !== 'file' && token.dpop,
    certificate:
      target.certificate === null
        ? null
        : {
            file: target.certificate.certFile,
            asksForToken: token !== null && isAskedForAsShown(token, target),
          },
    key: isCall ? 'none' : keyWord(plan.value),
    attempts: target.retries.attempts,
  });
}

function headerOf({ headers }: PolicyRequest, wanted: string): string | null {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? null;
}

function keyWord(plan: KeyPlan): EgressExplanation['key'] {
  switch (plan.kind) {
    case 'generate':
      return 'generated';
    case 'derive':
      return 'derived';
    case 'kept':
      return plan.hasKey ? 'kept' : 'none';
  }
}

/** The same for people, a line for each step. */
export function egressLines(
  { allowed, reason, target, sends, token, dpop, certificate, key, attempts }: EgressExplanation,
  { targets }: EgressSettings,
  request: PolicyRequest,
): readonly string[] {
  const prefixes = targets.map(({ prefix }) => prefix).join(', ');
  const found = target === null ? `none; prefixes of targets: ${prefixes}` : `${target}, by the prefix of its path`;
  if (!allowed || sends === null) {
    const allow = targets
      .filter(({ name }) => name === target)
      .flatMap(({ routes }) => routes)
      .map(({ methods, paths }) => `${[...(methods ?? ['*'])].join(' ')} ${paths.map(({ text }) => text).join(' ')}`);
    return [
      `target   ${found}`,
      ...(allow.length === 0 ? [] : [`allowed  ${allow.join('; ')}`]),
      `denied   ${reason ?? ''}: ${request.method} ${request.path} is not sent`,
    ];
  }
  return [
    `target   ${found}`,
    `sends    ${sends.method} ${sends.url}`,
    `token    ${token ?? 'none'}${dpop ? ', bound to a key of this process: each attempt has a proof of its own (DPoP)' : ''}`,
    ...(certificate === null
      ? []
      : [
          `shows    ${certificate.file}${certificate.asksForToken ? ', with which the token is asked for as well' : ''}`,
        ]),
    `key      ${keyWords[key]}`,
    `retries  ${String(attempts)} attempts at most, of what certainly was not applied${key === 'none' ? '' : ', and of what is in doubt'}`,
    'allowed',
  ];
}

const keyWords: Readonly<Record<EgressExplanation['key'], string>> = {
  kept: 'the caller’s own',
  generated: 'a new one, the same in each attempt',
  derived: 'made of what key_from names; without it the request is answered 400',
  none: 'none: it is sent again in doubt only if it is GET, HEAD or OPTIONS',
};
