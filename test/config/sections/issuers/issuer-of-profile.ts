/** The least config of an issuer of each profile. */
import type { IssuerSettings } from '../../../../src/config/types.js';
import { compiled, configText } from '../../inspection.js';

export type Entries = Readonly<Record<string, string | null>>;

export const usual: Readonly<Record<string, Entries>> = {
  core: { issuer: '"https://idp.example.com/t"', audience: 'orders', source: 'microservice', token_type: 'service' },
  oauth: { issuer: '"https://idp.example.com/t"', profile: 'oauth', audience: 'orders' },
  kubernetes: { issuer: '"https://k8s.example.com"', profile: 'kubernetes', audience: 'orders' },
  spiffe: { profile: 'spiffe', audience: 'orders', trust_domain: 'shop.example', bundle_file: '/bundle.json' },
};

export function issuerText(profile: string, changes: Entries = {}): string {
  const entries = Object.entries({ ...usual[profile], ...changes }).flatMap(([key, value]) =>
    value === null ? [] : [`${key}: ${value}`],
  );
  return configText({ issuers: `{ idp: { ${entries.join(', ')} } }` });
}

export function issuer(profile: string, changes: Entries = {}): IssuerSettings {
  const [only] = compiled(issuerText(profile, changes)).issuers;
  if (only === undefined) throw new Error('no issuer');
  return only;
}
