/** Why the proxy does not start; the kind settles the exit code. */
export interface StartFailure {
  /** `invalid`: what was read is wrong. `unreadable`: a file may not be read as it is. `unavailable`: out of reach. */
  readonly kind: 'invalid' | 'unreadable' | 'unavailable';
  /** One line each, for people. */
  readonly messages: readonly string[];
  /**
   * The same for a terminal: with the lines of the config that they are about. Each says by itself that it is an error.
   */
  readonly shown?: readonly string[];
  /** What to do about it, one line each. */
  readonly hints?: readonly string[];
}

/** Names one reason. */
export function startFailure(kind: StartFailure['kind'], ...messages: readonly string[]): StartFailure {
  return { kind, messages };
}
