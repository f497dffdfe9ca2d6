import { cnfOf } from '../../../core-api/mint-request.js';
import type { Confirmation } from '../../../decision/binding/confirmation.js';
import { approvesSubject, sampleSubjects } from '../../../decision/route/approval.js';
import type { Route } from '../../../decision/route/policy.js';
import { devClaims } from './profiles.js';
import type { Sample } from './examples.js';

/** A token shows what it shows for a working morning; the proxy accepts none that lives longer. */
export const validityS = 2 * 60 * 60;

/** What the token of an example says. */
export interface Caller {
  readonly subject: string;
  readonly permissions: readonly string[];
  readonly issuerName: string;
  /** What it is bound to; left out where that is nothing. */
  readonly confirmation?: Confirmation;
}

/** The claim of what a token is bound to. */
export function boundClaim({ confirmation }: Pick<Caller, 'confirmation'>): { readonly cnf?: object } {
  return confirmation === undefined ? {} : { cnf: cnfOf(confirmation) };
}

/**
 * The caller that a sample is let through for, with every permission that any route asks of it: it may use its other
 * routes too.
 */
export function callerOf(sample: Sample | null, routes: readonly Route[], issuerNames: readonly string[]): Caller {
  const [subject = 'checkout'] = sample?.approval ? sampleSubjects(sample.approval) : [];
  const approvals = routes.flatMap((route) => route.approvals).filter((approval) => approvesSubject(approval, subject));
  const permissions = [...new Set(approvals.flatMap((approval) => approval.permissions))];
  const issuerName = issuerNames.find((name) => sample?.issuers?.has(name) ?? true) ?? 'core';
  return { subject, permissions, issuerName };
}

/** Mints a service token as a real service does: by a call to the Core. */
export async function mint(coreUrl: string, caller: Caller): Promise<string> {
  const { subject, permissions, issuerName } = caller;
  const { audience, source, tokenType } = devClaims(issuerName);
  const response = await fetch(`${coreUrl}/recipe/jwt`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', rid: 'jwt' },
    body: JSON.stringify({
      algorithm: 'RS256',
      jwksDomain: coreUrl,
      payload: { sub: subject, aud: audience, source, token_type: tokenType, permissions, ...boundClaim(caller) },
      useStaticSigningKey: false,
      validity: validityS,
    }),
  });
  const body: unknown = await response.json();
  if (!isMinted(body)) throw new Error('the Core emulator minted no token');
  return body.jwt;
}

function isMinted(body: unknown): body is { readonly jwt: string } {
  return typeof body === 'object' && body !== null && 'jwt' in body && typeof body.jwt === 'string';
}
