/** What of a route says which certificates its callers have to show. */
import type { ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';

/** A certificate that nobody verifies is one that anybody makes. */
export function checkClientCertificates(
  { routes, listen, isPresent, rawValue, applicationVerifies, servesCallers }: ParsedConfig,
  report: Report,
): void {
  const isVerified =
    applicationVerifies === true ||
    listen === null ||
    listen.value.client_cert_header ||
    (applicationVerifies === null && (listen.value.tls?.client_ca_file ?? null) !== null);
  for (const { path } of routes) {
    const at = [...path, 'client_certificates'];
    if (!isPresent(at)) continue;
    if (rawValue([...path, 'access']) === 'public') {
      report.keyError(at, `${nameOf(at)} stands beside access: public, which asks nobody who they are`, 'one of them');
    } else if (!servesCallers) {
      report.error(
        at,
        `${nameOf(at)} asks for certificates of callers, which nobody shows to decide: its requests would all be refused`,
        'the sidecar in front of the service, or tokens that are bound to keys',
      );
    } else if (!isVerified) {
      report.error(
        at,
        `${nameOf(at)} asks for certificates, and nobody verifies those of callers`,
        applicationVerifies === null
          ? 'listen.tls.client_ca_file, or listen.client_cert_header behind a proxy that does'
          : 'https: { requestCert: true, ca } of the application, or listen.client_cert_header behind a proxy that does',
      );
    }
  }
}
