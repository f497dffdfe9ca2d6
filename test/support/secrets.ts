/** What was sent and may not be written anywhere. */
export interface Secrets {
  readonly add: (secret: string) => void;
  /** Adds the values of `Authorization`, `Cookie` and their like in the head of a request. */
  readonly addFieldsOf: (bytes: string | Buffer) => void;
  /** Those that occur in a text, shortened. */
  readonly foundIn: (text: string) => string[];
}

/**
 * Marks a secret of a test that has no form by itself: part of a body, a query, a cookie or a password. Found anywhere,
 * it is a leak.
 */
export const markedSecret = 'marked-secret-5d1f';

/** Shorter values, such as the word `Bearer` or a single digit, stand in a log for other reasons. */
const shortestSecret = 12;

const secretField = /^(?:authorization|proxy-authorization|cookie|x-api-key|api-key): *(.*)$/gim;

export function createSecrets(): Secrets {
  const known = new Set<string>([markedSecret]);
  const add = (secret: string): void => {
    const parts = [secret, ...secret.split(/[\s,;=]+/), ...secret.split('.').slice(1)];
    for (const part of parts) {
      if (part.length >= shortestSecret) known.add(part.slice(0, 400));
    }
  };
  return {
    add,
    addFieldsOf: (bytes) => {
      const [head = ''] = bytes.toString('latin1').split('\r\n\r\n');
      for (const [, value = ''] of head.matchAll(secretField)) add(value);
    },
    foundIn: (text) => [...known].filter((secret) => text.includes(secret)).map((secret) => `${secret.slice(0, 24)}…`),
  };
}
