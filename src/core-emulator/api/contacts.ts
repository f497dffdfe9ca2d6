import type { Dialect } from '../context.js';
import { matching, string, type Reader } from '../http/body.js';

const address = /^[^\s\p{C}@]+@[^\s\p{C}@.]+(?:\.[^\s\p{C}@.]+)*$/u;

/** ITU-T E.164 §6.2: a country code and a number, 15 digits at most. */
const international = /^\+[1-9][0-9]{4,14}$/;

interface ContactReaders {
  readonly email: Reader<string>;
  readonly phoneNumber: Reader<string>;
}

/**
 * The specification names an email and a phone number in international format (docs/specification.md 4.4 to 4.8);
 * SuperTokens takes any text for both.
 */
const readers: Readonly<Record<Dialect, ContactReaders>> = {
  seed: { email: matching(address), phoneNumber: matching(international) },
  supertokens: { email: string, phoneNumber: string },
};

/** Readers of the contacts that a call creates or changes. */
export function contactReaders({ dialect }: { readonly dialect: Dialect }): ContactReaders {
  return readers[dialect];
}

/** An email as the Core compares it. */
export function normaliseEmail(email: string): string {
  return email.trim().toLowerCase();
}
