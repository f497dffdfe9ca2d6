import t from 'tap';
import { identityHeaders } from '../../../src/decision/http/forwarded-headers.js';
import type { Principal } from '../../../src/decision/token/principal.js';

const principal: Principal = {
  kind: 'service',
  issuerName: 'core',
  issuer: 'https://api.example.com',
  subject: 'checkout',
  permissions: ['orders:write', 'orders:read'],
  tokenId: 't-1',
  keyId: 'd-1',
  expiresAtS: 2,
  issuedAtS: 1,
};
const names = {
  subject: 'X-Auth-Subject',
  issuer: 'X-Auth-Issuer',
  permissions: 'X-Auth-Permissions',
  tokenId: 'X-Auth-Token-Id',
  kind: 'X-Auth-Kind',
};
const none = { subject: null, issuer: null, permissions: null, tokenId: null, kind: null };

const cases = [
  {
    name: 'all, permissions in the order of the token',
    names,
    principal,
    expected: [
      'X-Auth-Subject',
      'checkout',
      'X-Auth-Issuer',
      'https://api.example.com',
      'X-Auth-Permissions',
      'orders:write orders:read',
      'X-Auth-Token-Id',
      't-1',
      'X-Auth-Kind',
      'service',
    ],
  },
  {
    name: 'under other names',
    names: { ...none, subject: 'Remote-User' },
    principal,
    expected: ['Remote-User', 'checkout'],
  },
  {
    name: 'null drops one',
    names: { ...names, issuer: null, permissions: null, tokenId: null },
    principal,
    expected: ['X-Auth-Subject', 'checkout', 'X-Auth-Kind', 'service'],
  },
  { name: 'or all', names: none, principal, expected: [] },
  {
    name: 'no token id where there is none',
    names: { ...none, tokenId: 'X-Auth-Token-Id' },
    principal: { ...principal, tokenId: null },
    expected: [],
  },
  {
    name: 'no permissions are an empty list',
    names: { ...none, permissions: 'P' },
    principal: { ...principal, permissions: [] },
    expected: ['P', ''],
  },
  {
    name: 'a session',
    names: { ...none, kind: 'K' },
    principal: { ...principal, kind: 'session' as const },
    expected: ['K', 'session'],
  },
];

t.test('identity headers are those of the principal, under the names of the config', (t) => {
  for (const { name, names, principal, expected } of cases) t.same(identityHeaders(names, principal), expected, name);
  t.end();
});
