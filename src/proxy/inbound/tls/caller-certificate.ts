import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { callerCertificate, type CallerCertificate } from '../../../decision/binding/certificate.js';

/**
 * The certificate that a caller showed when its connection began; `null` where it showed none. A session of TLS that is
 * resumed has the certificate with which it was begun: whoever resumes it has the secret of that session. Whether it is
 * over by now is asked for each request.
 *
 * @param hasAuthorities whether `client_ca_file` says who vouches for certificates: without it nobody does.
 */
export function callerCertificateOf(socket: Socket, hasAuthorities: boolean): CallerCertificate | null {
  if (!(socket instanceof TLSSocket)) return null;
  const certificate = socket.getPeerX509Certificate();
  return certificate === undefined ? null : callerCertificate(certificate, hasAuthorities && socket.authorized);
}
