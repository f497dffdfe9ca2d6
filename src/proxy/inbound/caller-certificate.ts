import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { certificateName } from '../../decision/binding/certificate-name.js';
import type { CallerCertificate } from '../../decision/binding/certificate.js';

/**
 * The certificate that a caller showed when its connection began; `null` where it showed none. A session of TLS that is
 * resumed has the certificate with which it was begun: whoever resumes it has the secret of that session.
 *
 * @param hasAuthorities whether `client_ca_file` says who vouches for certificates: without it nobody does.
 */
export function callerCertificateOf(socket: Socket, hasAuthorities: boolean): CallerCertificate | null {
  if (!(socket instanceof TLSSocket)) return null;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return null;
  return {
    digest: hash('sha256', certificate.raw, 'base64url'),
    isVerified: hasAuthorities && socket.authorized,
    name: certificateName(certificate),
  };
}
