import { peekHeader } from './compact-jws.js';
import { denial, type Denial } from '../denial.js';
import type { RequestFields } from '../http/request-headers.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { readSessionFields, type SessionFields } from '../session/headers.js';
import { isSessionHeader } from '../session/token.js';

/** What a caller shows to prove who it is. */
export type Credential =
  | { readonly kind: 'service'; readonly token: string }
  | {
      readonly kind: 'session';
      readonly token: string;
      readonly from: 'field' | 'cookie';
      readonly fields: SessionFields;
    };

/** Which kinds count. */
export interface AcceptedKinds {
  readonly service: boolean;
  readonly session: boolean;
}

/**
 * Settles by form which credential a request has, before anything is verified: what is refused later never falls
 * through to another one. Where sessions count, a session is an `sAccessToken` cookie or a bearer token whose header
 * has a `version`, and `Authorization`, whatever it holds, beside such a cookie is `credential_ambiguous`. Where they
 * do not, no cookie is looked at.
 */
export function readCredential(
  { authorization, bearer, passed }: Pick<RequestFields, 'authorization' | 'bearer' | 'passed'>,
  accepts: AcceptedKinds,
): Result<Credential, Denial> {
  if (!accepts.session) return bearer.ok ? accept({ kind: 'service', token: bearer.value }) : bearer;
  const fields = readSessionFields(passed);
  const [cookie, second] = fields.accessTokens;
  if (cookie !== undefined && authorization !== null) return refuse(denial('credential_ambiguous'));
  // Two of them came from two domains, and nothing says which is meant.
  if (second !== undefined) return refuse(denial('credential_ambiguous'));
  if (cookie !== undefined) return accept({ kind: 'session', token: cookie, from: 'cookie', fields });
  if (!bearer.ok) return bearer;
  const token = bearer.value;
  if (isSessionHeader(peekHeader(token))) return accept({ kind: 'session', token, from: 'field', fields });
  return accepts.service ? accept({ kind: 'service', token }) : refuse(denial('credential_kind_refused'));
}
