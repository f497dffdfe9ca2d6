/** Where an upstream is, as the config writes it. */
interface UpstreamAddress {
  /** What requests are addressed to, in the form of a URL's origin. */
  readonly origin: string;
  /** `null` where it is reached over the network. */
  readonly socketPath: string | null;
}

/** Reads `upstream.url`. */
export function upstreamAddress(url: string): UpstreamAddress {
  if (url.startsWith('unix:')) return { origin: 'http://localhost', socketPath: url.slice('unix:'.length) };
  return { origin: new URL(url).origin, socketPath: null };
}

/** Returns the upstream's own name, for the Host header. */
export function upstreamHost(url: string): string {
  return new URL(upstreamAddress(url).origin).host;
}
