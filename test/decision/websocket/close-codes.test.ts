import t from 'tap';
import { denial, reasons } from '../../../src/decision/denial.js';
import { closeCauseOf, closeCauses, closeCauseLabels } from '../../../src/decision/websocket/close-codes.js';

const judgements = [
  { reason: 'token_expired', as: 'expired', code: 4401 },
  { reason: 'session_expired', as: 'expired', code: 4401 },
  { reason: 'subject_revoked', as: 'revoked', code: 4401 },
  { reason: 'key_revoked', as: 'revoked', code: 4401 },
  { reason: 'key_unknown', as: 'revoked', code: 4401 },
  { reason: 'issuer_not_accepted', as: 'revoked', code: 4401 },
  { reason: 'permission_missing', as: 'forbidden', code: 4403 },
  { reason: 'route_unknown', as: 'forbidden', code: 4403 },
  { reason: 'upgrade_refused', as: 'forbidden', code: 4403 },
] as const;

t.test('what a later judgement means for the connection', (t) => {
  for (const { reason, as, code } of judgements) t.match(closeCauseOf(denial(reason)), { as, code, reason }, reason);
  for (const reason of ['keys_unavailable', 'store_unavailable', 'internal'] as const) {
    t.equal(closeCauseOf(denial(reason)), null, `${reason} is our failure`);
  }
  t.end();
});

t.test('RFC 6455 §5.5, §7.4: every ending may stand in a Close frame', (t) => {
  for (const cause of [
    ...Object.values(closeCauses),
    ...reasons.flatMap((reason) => closeCauseOf(denial(reason)) ?? []),
  ]) {
    t.ok(closeCauseLabels.includes(cause.as), cause.as);
    t.match(cause.text, /^[\x20-\x7e]{0,123}$/);
    t.ok(
      [1000, 1001, 1002, 1011].includes(cause.code) || (cause.code >= 4000 && cause.code < 5000),
      String(cause.code),
    );
  }
  t.end();
});

t.test('RFC 6455 §7.4.1: the code of each ending', (t) => {
  const codes = Object.fromEntries(Object.entries(closeCauses).map(([name, { code }]) => [name, code]));
  t.same(codes, {
    caller: 1000,
    upstream: 1000,
    callerLost: 1001,
    upstreamLost: 1011,
    malformedByCaller: 1002,
    malformedByUpstream: 1002,
    idle: 4408,
    expired: 4401,
    sessionExpired: 4401,
    shutdown: 1001,
  });
  t.end();
});
