import type { Explained } from './explained.js';
import { explain } from './explanation.js';

/** The whole explanation for programs. */
export function explanationData(explained: Explained): object {
  const {
    head,
    ruling: { decision, status, reason, denial, route, principal, preparation },
  } = explained;
  const { steps, headers } = explain(explained);
  return {
    request: { method: head.method, path: head.target },
    decision,
    status,
    reason,
    missing: denial?.missing ?? [],
    route: route?.name ?? null,
    mode: route?.mode ?? null,
    principal:
      principal === null
        ? null
        : {
            kind: principal.kind,
            issuer: principal.issuerName,
            subject: principal.subject,
            permissions: principal.permissions,
            token_id: principal.tokenId,
            key_id: principal.keyId,
            expires_at: principal.expiresAtS,
          },
    reservation:
      preparation === null
        ? null
        : {
            operation: preparation.rules.operation,
            record: preparation.recordId,
            single_use: preparation.rules.singleUse,
          },
    headers,
    steps,
  };
}
