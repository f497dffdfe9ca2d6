/** By what name a certificate's owner is known. Pure. */

/**
 * Of an `X509Certificate`. Whatever its types say, `subject` is nothing where a certificate has none (RFC 5280
 * §4.1.2.6), and both are where they cannot be read.
 */
interface Names {
  readonly subject: string | null | undefined;
  readonly subjectAltName: string | null | undefined;
}

/** It goes to a header and to log lines. */
const maxNameLength = 1_024;

/** Visible ASCII and blanks, and nothing that Node.js puts quotes around. */
const plainName = /^[\x20-\x7e]+$/;

const spiffeId = /^URI:(spiffe:\/\/[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*)$/;

/**
 * Returns the SPIFFE ID of a certificate (X509-SVID §2: its only URI), else its subject as RFC 4514 writes it, most
 * specific first; `null` where there is none, or one of other characters than ASCII, or of too many.
 */
export function certificateName({ subject, subjectAltName }: Names): string | null {
  const [uri, ...more] = (subjectAltName ?? '').split(', ').filter((name) => name.startsWith('URI:'));
  const [, id = null] = uri === undefined || more.length > 0 ? [] : (spiffeId.exec(uri) ?? []);
  if (id !== null) return id.length <= maxNameLength ? id : null;
  const name = (subject ?? '').split('\n').reverse().join(',');
  return name.length <= maxNameLength && plainName.test(name) ? name : null;
}
