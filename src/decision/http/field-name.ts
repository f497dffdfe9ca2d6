/** RFC 9110 §5.6.2 `token`. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const notAlphanumeric = /[^0-9a-z]+/g;

/** Tells whether a text may be the name of a field (RFC 9110 §5.1). */
export function isFieldName(text: string): boolean {
  return token.test(text);
}

/**
 * What two names have in common that a receiver may take for one: CGI, WSGI and kin turn case and punctuation of a name
 * into the same variable, so that `X_Auth.Subject` arrives as `X-Auth-Subject` does.
 */
export function lookAlikeKey(name: string): string {
  return name.toLowerCase().replace(notAlphanumeric, '');
}
