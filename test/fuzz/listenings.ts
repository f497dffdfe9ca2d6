/** How the listeners of the policies take bound tokens, and clients with keys and certificates. */
import { createHash, X509Certificate } from 'node:crypto';
import { makeCertificate } from '../../src/cli/commands/dev/certificate.js';
import type { ProofKeeper } from '../../src/ports/auth.js';
import { proofKey } from '../support/dpop.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { plainListening, type Listening, type ShownCertificate } from './model-bound-tokens.js';
import type { Policy } from './model-policy.js';
import { policies } from './policies.js';

/** Of whom has a bound token, and of somebody else. */
export const clients = {
  own: clientOf('own', 'ES256'),
  fast: clientOf('fast', 'EdDSA'),
  thief: clientOf('thief', 'ES256'),
};

interface Client {
  readonly key: ReturnType<typeof proofKey>;
  readonly certificate: ShownCertificate;
  /** Of RFC 9440. */
  readonly header: string;
}

export const origin = 'https://orders.example.com';
export const nonce = 'nonce-of-now';

/** The listeners that the whole decision is tried behind. */
export const listenings: readonly { readonly policy: Policy; readonly listening: Listening }[] = [
  { policy: policyAt(0), listening: { ...plainListening, dpop: dpopWith(null) } },
  {
    policy: certified(policyAt(1)),
    listening: {
      ...plainListening,
      dpop: dpopWith(nonce),
      readsClientCert: true,
      certificate: { ...clients.own.certificate, name: null },
    },
  },
  { policy: policyAt(2), listening: { ...plainListening, trusted: true, certificate: clients.own.certificate } },
  {
    policy: certified(policyAt(0)),
    listening: { dpop: dpopWith(null), readsClientCert: true, trusted: true, certificate: clients.thief.certificate },
  },
];

/** The same as keys of a config. */
export function listenKeys({ dpop, readsClientCert }: Listening, callerAddress: string): ConfigTree {
  return {
    listen: {
      client_cert_header: readsClientCert,
      trust_forwarded: readsClientCert ? [callerAddress] : [],
      dpop: dpop === null ? null : { origins: [...dpop.origins], max_age: '60s', clock_skew: '5s' },
    },
    ...(dpop === null ? {} : { store: { memory: {} } }),
  };
}

/** Says of a proof what its `jti` says: a store that stands in. */
export function proofKeeper({ dpop }: Listening): ProofKeeper {
  return {
    use: ({ id }) => Promise.resolve(id.startsWith('away') ? 'unavailable' : id.startsWith('used') ? 'used' : 'new'),
    isNonce: dpop === null || dpop.nonce === null ? null : (text) => text === dpop.nonce,
  };
}

function dpopWith(asked: string | null): NonNullable<Listening['dpop']> {
  return { origins: [origin, 'http://127.0.0.1:8080'], maxAgeMs: 60_000, clockSkewMs: 5_000, nonce: asked };
}

/** Some of its routes ask for certificates, and the receiver is told whose it was. */
function certified(policy: Policy): Policy {
  const accepted = [clients.own.certificate.name ?? '', 'spiffe://shop.example/checkout'];
  return {
    ...policy,
    identity: { ...policy.identity, client_certificate: 'X-Auth-Client-Certificate' },
    routes: policy.routes.map((route) =>
      ['list-orders', 'create-order', 'either'].includes(route.name)
        ? { ...route, client_certificates: accepted }
        : route,
    ),
  };
}

function policyAt(index: number): Policy {
  const policy = policies[index];
  if (policy === undefined) throw new Error(`no policy ${String(index)}`);
  return policy;
}

function clientOf(name: string, algorithm: 'ES256' | 'EdDSA'): Client {
  const { raw } = new X509Certificate(makeCertificate(name, false).certificate);
  return {
    key: proofKey(algorithm),
    certificate: { digest: createHash('sha256').update(raw).digest('base64url'), name: `CN=${name}` },
    header: `:${raw.toString('base64')}:`,
  };
}
