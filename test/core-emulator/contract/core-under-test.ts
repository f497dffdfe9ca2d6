import { randomInt, randomUUID } from 'node:crypto';
import { hash as hashArgon2 } from '@node-rs/argon2';
import { hash as hashBcrypt } from '@node-rs/bcrypt';
import type { CoreAnswer, CoreClient } from '../core-client.js';

/** A Core that has to keep what the specification and SuperTokens promise; the tests leave its users behind. */
export interface CoreUnderTest {
  readonly core: CoreClient;
  /** A Core of SuperTokens takes SuperTokens' names only. */
  readonly dialect: 'seed' | 'supertokens';
  /** Whether it has the signer key of the published sample. */
  readonly hasSignerKey: boolean;
}

/** Header fields of the calls that import (docs/specification.md 9). */
export const importing = { 'cdi-version': '2.16' };

/** An email that no run before had. */
export function freshEmail(): string {
  return `u-${randomUUID()}@example.com`;
}

/** A phone number that no run before had, as far as numbers reach. */
export function freshPhoneNumber(): string {
  return `+1415${String(randomInt(2_000_000, 9_999_999))}`;
}

/** Texts that are no email address: SuperTokens takes them all the same. */
export const notEmails = [
  '',
  'ada',
  '@example.com',
  'ada@',
  'ada@@example.com',
  'ada@example.com ',
  ' ada@example.com',
  'a da@example.com',
  'ada@.com',
];

/** Texts that are no phone number in international format: SuperTokens takes them all the same. */
export const notInternational = [
  '',
  '030901820',
  '0049 30 901820',
  '+49 30 901820',
  '+030901820',
  '4930901820',
  '+1234567890123456',
  'phone',
];

/** Cheap: what a hash costs is not what is tested. */
export const hashes = {
  bcrypt: async (password: string): Promise<string> => (await hashBcrypt(password, 4)).replace('$2y$', () => '$2a$'),
  argon2: (password: string): Promise<string> => hashArgon2(password, { memoryCost: 1024, timeCost: 1 }),
};

/** Hashes of `correct horse`. */
export const argon2Hashes = {
  argon2d: '$argon2d$v=19$m=1024,t=1,p=1$j0H/86JW2oRLMPTALgnUDQ$Hkz9R3HicWQcobp9FrELUTVs9mipfj4YFXmmZqMKelw',
  argon2i: '$argon2i$v=19$m=1024,t=1,p=1$7cem8B61u04TW1WQ7v5BYA$GWaVBKek0ZU2x4jwcgRYgc85lj0N5bjprwgYMdD+hio',
  argon2id: '$argon2id$v=19$m=1024,t=1,p=1$hEBqBMyHUw30SfJutZhIBA$3B8Fom4joz+5m4x+JdgTcYgCEtDp91C9rq4/1RADltg',
};

export type UserJson = Readonly<Record<string, unknown>> & { readonly id: string };

/** The user of an answer. */
export function userOf(answer: CoreAnswer): UserJson {
  return answer.json()['user'] as UserJson;
}

/** The Core's status, or the HTTP status and text of a refusal. */
export function statusOf(answer: CoreAnswer): unknown {
  return answer.status === 200 ? answer.json()['status'] : `${String(answer.status)} ${answer.body.trim()}`;
}
