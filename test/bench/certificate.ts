import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openssl } from '../support/openssl.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

/** A certificate for 127.0.0.1 that its own key signed: PEM texts and files. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export type CertificateKind = 'ECDSA' | 'RSA';

const newKey: Readonly<Record<CertificateKind, readonly string[]>> = {
  ECDSA: ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  RSA: ['rsa:2048'],
};

export function makeCertificate(t: Scope, kind: CertificateKind): Certificate {
  const dir = tempDir(t);
  const [certFile, keyFile] = [join(dir, 'server.crt'), join(dir, 'server.key')];
  openssl(
    dir,
    ...['req', '-x509', '-newkey', ...newKey[kind], '-nodes', '-keyout', keyFile, '-out', certFile, '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
  );
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8'), certFile, keyFile };
}
