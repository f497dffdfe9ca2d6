import type { Fields } from './http/body.js';
import type { Version } from './cdi-version.js';
import type { Message } from './http/messages.js';
import type { Passwords } from './passwords.js';
import type { Records } from './storage/records.js';
import type { SigningKeys } from './keys/signing-keys.js';

/** Whose names the emulator uses where the specification and SuperTokens differ; it understands both. */
export type Dialect = 'seed' | 'supertokens';

/** What every call works with. */
export interface Core {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly dialect: Dialect;
  readonly keys: SigningKeys;
  readonly records: Records;
  readonly passwords: Passwords;
  /** How long a code of a passwordless sign-in can be consumed. */
  readonly codeLifetimeMs: number;
  readonly accessTokenValidityMs: number;
}

/** One call of the API, its API key and version checked. */
export interface Call {
  readonly core: Core;
  readonly version: Version;
  readonly query: URLSearchParams;
  /** Members of the body; `null` where it is no JSON object. */
  readonly fields: Fields | null;
}

/** Answers calls of one path and method. */
export type Endpoint = (call: Call) => Message | Promise<Message>;
