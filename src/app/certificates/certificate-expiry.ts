import { X509Certificate } from 'node:crypto';
import { timestamp } from '../../lib/timestamp.js';
import { readCaBundle } from '../../lib/pem.js';
import {
  certificateState,
  daysLeft,
  validityOf,
  validityOfBundle,
  type CertificateState,
  type Validity,
} from '../../lib/certificate-validity.js';
import type { Clock, Log, Timers } from '../../ports/system.js';
import type { CertificateName, CertificateStatus } from '../../ports/observability.js';
import type { ListenerCertificates } from './certificates.js';

/** Between two looks: some certificates live for a day only. */
const checkIntervalMs = 60 * 60 * 1000;

/** Often enough to be seen, and not so often that it fills the log. */
const repeatMs = 24 * 60 * 60 * 1000;

interface CertificateExpiryDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
}

/** The certificates in use, and how long each of them counts. */
export interface CertificateExpiry {
  /** What the callers' listener shows from now on, and the authorities of client certificates. */
  readonly useListener: (certificates: ListenerCertificates) => void;
  /** Authorities, as PEM text, that hold from now on; `null` where there are none of our own. */
  readonly useAuthorities: (name: 'client_ca' | 'upstream_ca' | 'store_ca', pem: string | null) => void;
  /** What issuers, or targets, are shown from now on, as PEM text by their names; others are shown nothing. */
  readonly useShown: (to: 'introspection' | 'target', chains: ReadonlyMap<string, string>) => void;
  readonly states: () => readonly CertificateStatus[];
  readonly close: () => void;
}

/**
 * Says in the log when a certificate that is taken into use has expired, does not count yet or expires soon, and says
 * it again once a day: nobody else tells an operator before callers fail.
 */
export function createCertificateExpiry({ clock, timers, log }: CertificateExpiryDeps): CertificateExpiry {
  const inUse = new Map<CertificateName, Validity>();
  /** What was last said of each, and when. */
  const said = new Map<CertificateName, { readonly state: CertificateState; readonly atMs: number }>();
  let cancel = timers.after(checkIntervalMs, checkAll);

  function checkAll(): void {
    cancel = timers.after(checkIntervalMs, checkAll);
    for (const [name, validity] of inUse) {
      const last = said.get(name);
      const isNews = last?.state !== certificateState(validity, clock.now());
      if (isNews || clock.now() - last.atMs >= repeatMs) say(name, validity);
    }
  }

  function use(name: CertificateName, validity: Validity | null): void {
    if (validity === null) {
      inUse.delete(name);
      return;
    }
    inUse.set(name, validity);
    say(name, validity);
  }

  function say(name: CertificateName, validity: Validity): void {
    const { certificate, state, validFrom, validTo, daysLeft: days } = statusOf(name, validity);
    said.set(name, { state, atMs: clock.now() });
    if (state === 'expired') log.error('a certificate has expired', { certificate, valid_to: validTo });
    if (state === 'not_yet_valid') log.error('a certificate is not valid yet', { certificate, valid_from: validFrom });
    if (state === 'expiring') {
      log.warn('a certificate expires soon', { certificate, valid_to: validTo, days_left: days });
    }
  }

  function statusOf(certificate: CertificateName, validity: Validity): CertificateStatus {
    const nowMs = clock.now();
    return {
      certificate,
      validFrom: timestamp(validity.notBeforeMs),
      validTo: timestamp(validity.notAfterMs),
      notBeforeS: validity.notBeforeMs / 1000,
      notAfterS: validity.notAfterMs / 1000,
      daysLeft: daysLeft(validity, nowMs),
      state: certificateState(validity, nowMs),
    };
  }

  function useShown(to: 'introspection' | 'target', chains: ReadonlyMap<string, string>): void {
    const prefix = `${to}:`;
    for (const name of [...inUse.keys()]) {
      if (name.startsWith(prefix) && !chains.has(name.slice(prefix.length))) use(name, null);
    }
    // What follows the certificate itself leads up to its authority.
    for (const [name, pem] of chains) use(`${to}:${name}`, validityOf(new X509Certificate(pem)));
  }

  function useAuthorities(name: CertificateName, pem: string | null): void {
    const certificates = pem === null ? null : readCaBundle(pem);
    use(name, certificates?.ok === true ? validityOfBundle(certificates.value) : null);
  }

  return {
    useListener: ({ leaf, clientCa }) => {
      use('listener', validityOf(leaf));
      useAuthorities('client_ca', clientCa);
    },
    useAuthorities,
    useShown,
    states: () => [...inUse].map(([name, validity]) => statusOf(name, validity)),
    close: () => cancel(),
  };
}
