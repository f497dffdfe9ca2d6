/** Callers whose credential holds, and who may not: what is revoked, and what the policy asks for. */
import { type Row, service, session, upgrade } from './explained-policy.js';

export const refusedPrincipals: readonly Row[] = [
  { reason: 'key_revoked', token: service({}, { kid: 'd-revoked' }), says: [/^revoked\.key_ids names d-revoked$/] },
  { reason: 'subject_revoked', token: service({ sub: 'mallory' }), says: [/^revoked\.subjects names mallory$/] },
  { reason: 'token_revoked', token: service({ jti: 'stolen' }), says: [/^revoked\.token_ids names stolen$/] },
  {
    reason: 'issue_time_revoked',
    token: service({ iat: undefined }),
    says: [/^revoked\.issued_before is later than its iat, or it has none$/],
  },
  {
    reason: 'token_id_missing',
    method: 'POST',
    headers: [['Idempotency-Key', 'a']],
    says: [/^jti is missing; a token for a route with single_use/],
  },
  {
    reason: 'route_unknown',
    path: '/Orders',
    says: [/^no route has this method and path$/, /^not orders: \/orders differs in case/],
  },
  {
    reason: 'subject_not_approved',
    token: service({ sub: 'eve' }),
    says: [/^subject eve: not approved; approved: checkout$/],
  },
  {
    reason: 'permission_missing',
    token: service({ permissions: ['orders:read'] }),
    says: [
      /^the token grants orders:read; it lacks orders:list$/,
      /^subject checkout: approved$/,
      /^permission orders:read: held$/,
      /^permission orders:list: missing$/,
    ],
  },
  {
    reason: 'permission_missing',
    token: service({ permissions: [] }),
    says: [/^the token grants nothing; it lacks orders:read orders:list$/],
  },
  { reason: 'session_claim_missing', path: '/me', token: session(), says: [/^claim role: is not "support"$/] },
  {
    reason: 'origin_refused',
    path: '/feed',
    headers: [
      ...upgrade,
      ['Sec-WebSocket-Version', '13'],
      ['Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
      ['Origin', 'https://evil.example'],
    ],
    says: [/^Origin is "https:\/\/evil\.example"; accepted: https:\/\/app\.example\.com, as the route says$/],
  },
];
