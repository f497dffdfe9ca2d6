/** What a row of the input asks for: one user of the Core, in one of its three ways to sign in. */

export type HashAlgorithm = 'bcrypt' | 'argon2' | 'hosted_scrypt';

export interface Contact {
  readonly kind: 'email' | 'phoneNumber';
  readonly value: string;
}

export interface PasswordUser {
  readonly kind: 'password';
  readonly email: string;
  readonly passwordHash: string;
  readonly algorithm: HashAlgorithm;
}

export interface PasswordlessUser {
  readonly kind: 'passwordless';
  readonly contact: Contact;
  /** The other contact, which the Core learns after the user is there. */
  readonly add: Contact | null;
}

export interface ThirdPartyUser {
  readonly kind: 'third_party';
  readonly thirdPartyId: string;
  readonly thirdPartyUserId: string;
  readonly email: string;
  readonly isVerified: boolean;
}

export type ImportedUser = PasswordUser | PasswordlessUser | ThirdPartyUser;

/** Kinds as plan and report count them. */
export const userKinds = ['bcrypt', 'argon2', 'hosted_scrypt', 'passwordless', 'third_party'] as const;

export type UserKind = (typeof userKinds)[number];

/** What is wrong with a row, in words without any of its secrets. */
export interface RowProblem {
  /** Member of the row, such as `passwordless.email`, or `row`. */
  readonly field: string;
  readonly what: string;
  readonly allowed: string;
}

export function kindOf(user: ImportedUser): UserKind {
  return user.kind === 'password' ? user.algorithm : user.kind;
}

/**
 * Names under which the Core keeps the user apart from others of its kind: two rows that share one are the same user.
 * The Core folds the case of email addresses.
 */
export function identitiesOf(user: ImportedUser): readonly string[] {
  switch (user.kind) {
    case 'password':
      return [`password ${user.email.toLowerCase()}`];
    case 'passwordless':
      return [user.contact, ...(user.add === null ? [] : [user.add])].map(
        ({ value }) => `passwordless ${value.toLowerCase()}`,
      );
    case 'third_party':
      return [`third_party ${JSON.stringify([user.thirdPartyId, user.thirdPartyUserId])}`];
  }
}

/** Contacts that no other row in flight may share. */
export function contactsOf(user: ImportedUser): readonly string[] {
  if (user.kind !== 'passwordless') return [user.email.toLowerCase()];
  return [user.contact.value.toLowerCase(), ...(user.add === null ? [] : [user.add.value.toLowerCase()])];
}

export function problemText({ field, what, allowed }: RowProblem): string {
  return `${field} ${what}; allowed: ${allowed}`;
}
