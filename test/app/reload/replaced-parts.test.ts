import t from 'tap';
import { isSameUpstream } from '../../../src/app/reload/replaced-parts.js';
import { usualUpstream } from '../../../src/config/sections/upstream.js';
import type { UpstreamSettings } from '../../../src/config/types.js';

/** Another value of the same kind. */
function otherThan(value: unknown): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  return Array.isArray(value) ? [...(value as readonly unknown[]), 'x-other'] : 'other';
}

t.test('every setting of an upstream gives its connections up, but those that come with each request', (t) => {
  const settings = usualUpstream('http://127.0.0.1:3000');
  const kept = Object.entries(settings)
    .filter(([key, value]) => isSameUpstream(settings, { ...settings, [key]: otherThan(value) }))
    .map(([key]) => key);
  const withEachRequest = ['caFile', 'host', 'beginsTrace', 'stripFields', 'passFields', 'responseTimeoutMs'];
  t.same(kept.sort(), withEachRequest.sort());
  t.ok(isSameUpstream(settings, usualUpstream('http://127.0.0.1:3000')));
  t.notOk(isSameUpstream(settings, { ...settings, later: 1 } as UpstreamSettings), 'one that this test does not know');
  t.end();
});
