import type { ActiveConfig } from '../../proxy/auth/active-config.js';
import {
  assumeSession,
  assumeToken,
  forgeToken,
  noCredential,
  type ShownCredential,
} from '../simulate/test-credentials.js';
import { knownTo, shownTo } from '../simulate/certificates.js';
import type { AssumedKeys } from '../simulate/test-keys.js';
import { headersReceived } from '../explain/headers.js';
import type { Explained } from '../explain/explanation.js';
import { decideListeners, headOf, isServed, rule, type Ruling } from '../simulate/decide.js';
import type { PolicyCase } from './suite.js';

/** What became of one case. */
export interface CaseResult {
  readonly policyCase: PolicyCase;
  readonly explained: Explained;
  /** What is not as expected, one sentence each. */
  readonly mismatches: readonly string[];
}

/** Decides one case by the pipeline that serves. */
export async function runCase(
  policyCase: PolicyCase,
  activeConfig: ActiveConfig,
  keys: AssumedKeys,
  wallMs: number,
): Promise<CaseResult> {
  const known = decideListeners(activeConfig.config).map(({ name }) => name);
  const { listener } = policyCase;
  if (listener !== null && !known.includes(listener)) {
    const explained = await decideCase(
      { ...policyCase, listener: null },
      activeConfig,
      keys,
      policyCase.atMs ?? wallMs,
    );
    return { policyCase, explained, mismatches: [`listener: the config has no ${listener}; it has: ${words(known)}`] };
  }
  const explained = await decideCase(policyCase, activeConfig, keys, policyCase.atMs ?? wallMs);
  const { ruling } = explained;
  // Where proxies alone ask, what is expected has to hold at each of their listeners.
  const others = listener !== null || isServed(activeConfig.config) ? [] : ruling.elsewhere;
  const mismatches = [ruling, ...others].flatMap((each) => {
    const at = others.length === 0 ? '' : `${each.listener?.name ?? ''}: `;
    return compare(policyCase, each).map((text) => `${at}${text}`);
  });
  return { policyCase, explained, mismatches };
}

/** A request, and what is taken for granted of who sends it. */
export type AssumedCase = Pick<PolicyCase, 'request' | 'credential'> & Partial<Pick<PolicyCase, 'listener'>>;

/** Decides it by the pipeline that serves, with all that is needed to explain it. */
export async function decideCase(
  assumed: AssumedCase,
  activeConfig: ActiveConfig,
  keys: AssumedKeys,
  nowMs: number,
): Promise<Explained> {
  const credential = credentialOf(assumed, activeConfig, keys, nowMs);
  const { request } = assumed;
  const certificate = shownTo(activeConfig.config, request.certificate ?? null);
  const head = headOf(request, credential.headers);
  const shownWith = { certificate, provedKey: credential.provedKey };
  const bodyBytes = Buffer.byteLength(request.body ?? '');
  const ruling = await rule(head, bodyBytes, activeConfig, nowMs, shownWith, assumed.listener);
  return {
    head,
    activeConfig,
    nowMs,
    ruling,
    credentialNotes: credential.notes,
    certificate: knownTo(ruling, certificate),
  };
}

function credentialOf(
  { credential, request }: AssumedCase,
  activeConfig: ActiveConfig,
  keys: AssumedKeys,
  nowMs: number,
): ShownCredential {
  switch (credential.kind) {
    case 'none':
      return noCredential;
    case 'invalid':
      return forgeToken(activeConfig, keys);
    case 'session':
      return assumeSession(credential.claims, activeConfig, keys, nowMs);
    case 'claims':
      return assumeToken(credential.claims, request, activeConfig, keys, nowMs);
  }
}

function compare({ expect }: PolicyCase, ruling: Ruling): readonly string[] {
  const { status, reason, route, preparation } = ruling;
  const found: string[] = [];
  const differ = (what: string, expected: string | number | null | undefined, actual: string | number | null): void => {
    if (expected !== undefined && expected !== actual) {
      found.push(`${what}: expected ${shown(expected)}, got ${shown(actual)}`);
    }
  };
  differ('status', expect.status, status);
  differ('reason', expect.reason, reason);
  differ('route', expect.route, route?.name ?? null);
  differ('reservation', expect.reservation, preparation === null ? 'none' : 'required');
  const received = headersReceived(ruling);
  for (const [name, value] of Object.entries(expect.headers ?? {})) {
    if (received === null) {
      found.push(`header ${name}: expected ${shown(value)}, but the upstream is not asked`);
    } else differ(`header ${name}`, value, received.get(name.toLowerCase()) ?? null);
  }
  return found;
}

function shown(value: string | number | null): string {
  return typeof value === 'string' ? JSON.stringify(value) : value === null ? 'none' : String(value);
}

function words(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}
