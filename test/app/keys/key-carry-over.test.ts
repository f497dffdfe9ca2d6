import t from 'tap';
import { holdKeys } from '../../../src/adapters/jwks/key-set.js';
import { createKeyMemory } from '../../../src/app/keys/key-carry-over.js';
import type { DiscoveryPlace, KeySourceSettings } from '../../../src/config/types.js';
import { coreKeyRules } from '../../../src/decision/token/profiles.js';
import { manualTime } from '../../adapters/manual-time.js';

const place: DiscoveryPlace = {
  kind: 'discovery',
  url: 'https://idp.example.com/.well-known/openid-configuration',
  otherUrl: null,
  issuer: 'https://idp.example.com',
  keyOrigins: new Set(['https://idp.example.com', 'https://keys.example.com']),
  tokenOrigins: new Set(['https://keys.example.com']),
};

function settings(source: KeySourceSettings['source']): KeySourceSettings {
  return {
    source,
    rules: coreKeyRules,
    caFile: null,
    tokenFile: null,
    minAgeMs: 0,
    maxAgeMs: 600_000,
    maxStaleMs: null,
    cooldownMs: 0,
    timeoutMs: 1_000,
    maxBytes: 1_000,
  };
}

t.test('keys that were found by discovery serve on only where the same metadata would be taken', (t) => {
  const { clock } = manualTime();
  const memory = createKeyMemory(clock);
  const loaded = { keys: new Map(), skipped: [], freshnessMs: null, mustRevalidate: false };
  const held = holdKeys(null, loaded, clock.monotonic());
  memory.remember(settings(place), held);
  t.equal(memory.recall(settings({ ...place, keyOrigins: new Set([...place.keyOrigins].reverse()) })), held);
  const rows: Readonly<Record<string, KeySourceSettings['source']>> = {
    'another issuer': { ...place, issuer: 'https://other.example.com' },
    'an origin that counts no more': { ...place, keyOrigins: new Set(['https://idp.example.com']) },
    'another place of the metadata': { ...place, url: 'https://idp.example.com/metadata' },
    'the metadata as a key set': { kind: 'url', url: place.url },
  };
  for (const [name, source] of Object.entries(rows)) t.equal(memory.recall(settings(source)), null, name);
  t.end();
});
