const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection broke',
  EPIPE: 'the connection broke',
  UND_ERR_SOCKET: 'the connection broke',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name could not be looked up',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'the connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'the connection timed out',
  UND_ERR_HEADERS_TIMEOUT: 'the answer took too long',
  UND_ERR_BODY_TIMEOUT: 'the answer took too long',
  UND_ERR_HEADERS_OVERFLOW: 'the header of the response is too large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the answer has another length than it says',
  HTTPParserError: 'the response is not HTTP',
  UND_ERR_ABORTED: 'the request was called off',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host name',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate is of an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate is of an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is of an authority that is not trusted',
};

/** Says why a connection or a response failed, from the error's code alone: its message may quote what was received. */
export function networkFailure(error: unknown): string {
  const code = causeOf(error);
  if (code.startsWith('HPE_')) return `the response is not HTTP (${code})`;
  const known = words[code];
  return known === undefined ? `the request failed (${code})` : `${known} (${code})`;
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // A host with several addresses fails with one error for each.
  if (error instanceof AggregateError) return causeOf(error.errors[0]);
  return error.cause === undefined ? error.name : causeOf(error.cause);
}

/** Returns what an error says of itself. Not for errors of connections: they may quote what was received. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown error';
}

/** Returns the code that the system or Node gave an error, such as `ENOENT`; `otherwise` where it has none. */
export function codeOf(error: unknown, otherwise = 'unknown error'): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : otherwise;
}

/**
 * Says why a file cannot be opened or read, in words that follow its path.
 *
 * @param link what a path is that the system took for a link too many.
 */
export function fileFailure(error: unknown, link: string): string {
  const code = codeOf(error);
  if (code === 'ENOENT') return 'does not exist';
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user';
  if (code === 'ELOOP' || code === 'EMLINK') return link;
  // A socket, or a device without a driver.
  if (code === 'ENXIO') return 'is no regular file';
  return `cannot be read (${code})`;
}

/** Says why a file cannot be written, in words that follow its path. */
export function writeFailure(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOENT') return 'its folder does not exist';
  if (code === 'EACCES' || code === 'EPERM') return 'may not be written by this user';
  return `cannot be written (${code})`;
}

/** Frames of a stack that are told. */
const maxFrames = 6;

/**
 * Returns what the log may say of an unexpected error: its kind and where it was thrown, not its text, which may hold
 * anything.
 */
export function describeBug(error: unknown): { readonly error: string; readonly at: string } {
  if (!(error instanceof Error)) return { error: typeof error, at: '' };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    error: error.name,
    at: frames
      .slice(0, maxFrames)
      .map((line) => line.trim())
      .join(' < '),
  };
}
