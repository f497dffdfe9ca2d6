/** The real decision, asked in this process: what `serve` does with a head once Node has parsed it. */
import type { CompiledConfig } from '../../src/config/types.js';
import { responses } from '../../src/decision/denial.js';
import { accept, refuse } from '../../src/lib/result.js';
import { defaultMaxDepth, parseStrictJson } from '../../src/lib/strict-json.js';
import { createHeaderRules } from '../../src/decision/http/header-rules.js';
import { totalStripped } from '../../src/decision/http/stripped-headers.js';
import type { KeyLookup, SessionVerifier } from '../../src/ports/auth.js';
import type { ActiveConfig } from '../../src/proxy/auth/active-config.js';
import { authorizeRequest, type AuthResult, type Step } from '../../src/proxy/auth/authorize-request.js';
import type { ActiveSessions } from '../../src/proxy/auth/credentials/session.js';
import { createUpstream, type Upstream } from '../../src/proxy/upstream/pool/pool.js';
import { createVerifiedTokens } from '../../src/proxy/auth/verified-token-cache.js';
import { compiled } from '../proxy/harness.js';
import { merge } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { keyrings, publicNumbers } from './keyring.js';
import type { Field } from './model-fields.js';
import type { Policy } from './model-policy.js';
import { listenings, listenKeys, proofKeeper } from './listenings.js';
import { plainListening, type Listening } from './model-bound-tokens.js';
import { judge, type Expected, type Head, type Surroundings } from './model.js';
import { configOf, nowMs } from './policies.js';
import type { ModelKeys } from './profiles/model-keys.js';

/** One policy, as the model has it and as it is in force. */
export interface Stage {
  readonly surroundings: Surroundings;
  readonly activeConfig: ActiveConfig;
}

/** What became of a case. */
export interface Outcome {
  /** What is wrong: contract and code disagree. `null` where they do not. */
  readonly fault: string | null;
  readonly forwarded: boolean;
  /** How it went, in words that are the same for cases that went the same way. */
  readonly way: string;
}

const callerAddress = '192.0.2.7';
export const upstreamUrl = 'http://127.0.0.1:3000';

/** All policies, in force. */
export function createStages(t: Scope): readonly Stage[] {
  return listenings.map(({ policy, listening }) => {
    const keys = merge(configOf(policy), listenKeys(listening, callerAddress));
    const config = compiled({ ...keys, upstream: { url: upstreamUrl } });
    return createStage(policy, config, openUpstream(t, config), fixedKeys, listening);
  });
}

/** Where nothing is ever sent. */
export function openUpstream(t: Scope, config: CompiledConfig): Upstream {
  const upstream = createUpstream(config.upstream, null);
  t.teardown(async () => upstream.close());
  return upstream;
}

/** Keys by issuer and id, as they are looked up, and the same for the model. */
export interface StageKeys {
  readonly find: (issuerName: string, keyId: string) => KeyLookup;
  readonly model: ReadonlyMap<string, ModelKeys>;
}

const fixedKeys: StageKeys = {
  find: (issuerName, keyId) => keyrings[issuerName]?.(keyId) ?? { kind: 'unknown' },
  model: publicNumbers,
};

/** A policy with what was compiled from its YAML. */
export function createStage(
  policy: Policy,
  config: CompiledConfig,
  upstream: Upstream,
  keys: StageKeys = fixedKeys,
  listening: Listening = plainListening,
): Stage {
  const identityNames = Object.values(policy.identity);
  const activeConfig: ActiveConfig = {
    config,
    assertion: null,
    headerRules: createHeaderRules({
      identityNames,
      underscoreFields: policy.underscores,
      http10: policy.http10,
      readsClientCert: listening.readsClientCert,
    }),
    issuers: config.issuers.map(({ rules }) => ({
      rules,
      keys: {
        find: (keyId) => keys.find(rules.name, keyId),
        state: () => {
          throw new Error('not asked here');
        },
      },
    })),
    sessions: activeSessions(config),
    upstream,
    revocations: () => [config.revoked],
    knowsRevocations: () => true,
    verified: createVerifiedTokens(256 * 1024),
    proofs: proofKeeper(listening),
  };
  return {
    surroundings: {
      policy,
      keys: keys.model,
      sessionKeys,
      nowMs,
      upstreamHost: new URL(upstreamUrl).host,
      callerAddress,
      listening,
    },
    activeConfig,
  };
}

/** Whatever the keys of the Core sign; the same numbers for the model. */
export const sessionKeys = publicNumbers.get('core') ?? new Map<string, never>();

/** Sessions as the config has them, with the SDK's part played here. */
export function activeSessions({ sessions: settings }: CompiledConfig): ActiveSessions | null {
  const find = keyrings['core'];
  if (settings === null || find === undefined) return null;
  return {
    settings,
    keys: {
      find,
      state: () => {
        throw new Error('not asked here');
      },
    },
    verifier,
  };
}

/** Says of a session what its handle says; that one is gone in the Core is known only where the Core is asked. */
const verifier: SessionVerifier = {
  verify: (token, asksCore) => {
    const payload = parseStrictJson(Buffer.from(token.split('.')[1] ?? '', 'base64url'), { maxDepth: defaultMaxDepth });
    if (!payload.ok) throw new Error('a token that was verified can be read');
    const { sub: userId, sessionHandle: handle } = payload.value;
    if (typeof userId !== 'string') throw new Error('a token that was verified has a subject');
    if (handle === 'away') return Promise.resolve(refuse('unavailable'));
    if (handle === 'stale') return Promise.resolve(refuse('refresh'));
    if (handle === 'gone' && asksCore) return Promise.resolve(refuse('refused'));
    return Promise.resolve(accept({ userId, claims: payload.value, renewed: null }));
  },
};

/**
 * Asks both and compares: who may pass, with which status it is refused otherwise, and every field that the receiver
 * gets.
 */
export async function tryHead(head: Head, { surroundings, activeConfig }: Stage): Promise<Outcome> {
  const steps: Step[] = [];
  const { trusted, certificate } = surroundings.listening;
  const shown =
    certificate === null
      ? null
      : {
          digest: certificate.digest,
          isVerified: certificate.name !== null,
          name: certificate.name ?? 'CN=own',
          endsAtMs: Infinity,
        };
  const judged = await authorizeRequest(
    { method: head.method, target: head.target, httpVersion: head.version, rawHeaders: head.fields.flat() },
    { remoteAddress: callerAddress, encrypted: false, trusted, certificate: shown },
    activeConfig,
    surroundings.nowMs,
    (step, result) => {
      steps.push(step);
      return result;
    },
  );
  const expected = judge(head, surroundings);
  return { fault: faultOf(head, judged, expected), forwarded: judged.ok, way: wayOf(judged, steps, head) };
}

function faultOf(head: Head, judged: AuthResult, expected: Expected): string | null {
  if (!judged.ok) {
    const { reason } = judged.error.denial;
    const { status } = responses[reason];
    if (expected.kind === 'forwarded') {
      return `refused for ${reason}, though the contract lets it through to ${expected.route}`;
    }
    return expected.statuses.includes(status)
      ? null
      : `${String(status)} (${reason}) instead of ${expected.statuses.join(' or ')}`;
  }
  const { route, forwarded, target, principal } = judged.value;
  if (expected.kind === 'refused') {
    return `BYPASS: reached ${route.name} as ${principal?.subject ?? 'nobody'} instead of ${expected.statuses.join(' or ')}`;
  }
  if (route.name !== expected.route) return `BYPASS: reached ${route.name} instead of ${expected.route}`;
  if (target.raw !== head.target) return `forwards ${JSON.stringify(target.raw)}`;
  return differenceOf(pairs(forwarded), expected);
}

/** Where the fields that go on differ from those expected, in whatever order they stand. */
export function differenceOf(
  sent: readonly Field[],
  expected: Extract<Expected, { kind: 'forwarded' }>,
): string | null {
  const left = [...expected.fields];
  for (const [name, value] of sent) {
    const at = left.findIndex(([wanted, text]) => wanted === name && (text === null || text === value));
    if (at < 0) return `BYPASS: forwards ${JSON.stringify([name, value])}`;
    left.splice(at, 1);
  }
  return left.length === 0 ? null : `forwards no ${JSON.stringify(left)}`;
}

function wayOf(judged: AuthResult, steps: readonly Step[], head: Head): string {
  if (!judged.ok) {
    return `${judged.error.denial.reason} on ${judged.error.route?.name ?? 'none'} after ${steps.join(' ')}`;
  }
  const { route, target, headers: fields, stripped, forwarded, principal } = judged.value;
  const traits = [
    target.query === null ? '' : 'query',
    target.encodedSlash ? 'slash' : '',
    target.pathParameters ? 'parameters' : '',
    fields.chunked ? 'chunked' : '',
    fields.contentLength === null ? '' : 'length',
    fields.expectsContinue ? 'expect' : '',
    fields.closes ? 'close' : '',
    /%/.test(target.path) ? 'escape' : '',
  ];
  const counts = `${String(Math.min(totalStripped(stripped), 3))} ${String(forwarded.length)}`;
  return `${head.method} ${route.name} ${principal?.subject.slice(0, 12) ?? 'nobody'} ${counts} ${traits.join(' ')}`;
}

function pairs(flat: readonly string[]): Field[] {
  return flat.flatMap((name, index): Field[] => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : []));
}
