import type { Ruling } from '../simulate/decide.js';

/** Says what would be reserved. The store is not asked. */
export function explainReservation({ route, preparation, decision }: Ruling): readonly string[] {
  const rules = route?.reservation ?? null;
  const why = route?.unreservedBecause ?? null;
  const because = why === null ? [] : [`a write that is sent again runs again, because: ${why}`];
  if (rules === null) return ['the route reserves nothing', ...because];
  const asked = [
    ...because,
    ...(rules.key === null
      ? []
      : [`Idempotency-Key ${rules.key}, operation ${rules.operation}, kept for ${words(rules.retentionMs)}`]),
    ...(rules.singleUse ? ['a token passes once'] : []),
  ];
  if (decision !== 'allowed') return asked;
  if (preparation === null) {
    return [...asked, 'nothing is reserved: the request has no key, and may run more than once'];
  }
  return [
    ...asked,
    ...(preparation.recordId === null ? [] : [`would reserve record ${preparation.recordId}`]),
    ...(preparation.scope.token === null ? [] : [`would use up token id ${preparation.principal.tokenId ?? ''}`]),
    'the store is not asked: whether the key or the token was used before is not known here',
  ];
}

function words(ms: number): string {
  return ms % 3_600_000 === 0 ? `${ms / 3_600_000} h` : `${ms / 1_000} s`;
}
