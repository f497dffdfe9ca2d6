/** Users to import, with hashes that are cheap to make and to verify. */
import { createCipheriv, randomBytes, scryptSync } from 'node:crypto';
import { hashSync as argon2HashSync } from '@node-rs/argon2';
import { hashSync as bcryptHashSync } from '@node-rs/bcrypt';

/** How the Core shows that a user is there as the file says. */
export type Proof =
  | { readonly kind: 'password'; readonly email: string; readonly password: string }
  | { readonly kind: 'passwordless'; readonly email: string | null; readonly phoneNumber: string | null }
  | {
      readonly kind: 'third_party';
      readonly thirdPartyId: string;
      readonly thirdPartyUserId: string;
      readonly email: string;
      readonly isVerified: boolean;
    };

export interface MadeUser {
  /** As a line of the input has it, or one of its `methods`. */
  readonly row: object;
  readonly proof: Proof;
}

/** Firebase's published sample: https://github.com/firebase/scrypt. */
export const publishedSample = {
  signerKey: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==',
  saltSeparator: 'Bw==',
  rounds: 8,
  memCost: 14,
  salt: '42xEC+ixf3L2lw==',
  password: 'user1password',
  passwordHash: 'lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
};

interface Secret {
  readonly password: string;
  readonly passwordHash: string;
  readonly hashingAlgorithm?: string;
}

/** Each kind of hash so often: making one for every user would take longer than importing it. */
const poolSize = 24;

/** For the kinds in turn: how far before the user is whose email it shares. */
const sharedWith = [0, 0, 0, 2, 0, 5];

/** Makes users of all kinds in turn; some share their email with one of another kind that is near. */
export function createUserMaker(): (number: number) => MadeUser {
  const pools = [pool(bcryptSecret), pool(argon2Secret), pool(hostedScryptSecret)];
  return (number) => {
    const email = `user${String(number - (sharedWith[number % 6] ?? 0))}@example.com`;
    const phoneNumber = `+4915${String(100_000_000 + number)}`;
    const secret = pools[number % 3]?.[Math.floor(number / 3) % poolSize];
    switch (number % 6) {
      case 3:
        return {
          row: { passwordless: { email, add: phoneNumber } },
          proof: { kind: 'passwordless', email, phoneNumber },
        };
      case 4:
        return { row: { passwordless: { phoneNumber } }, proof: { kind: 'passwordless', email: null, phoneNumber } };
      case 5: {
        const thirdParty = {
          thirdPartyId: 'google',
          thirdPartyUserId: `g-${String(number)}`,
          email,
          isVerified: number % 12 === 5,
        };
        return { row: { thirdParty }, proof: { kind: 'third_party', ...thirdParty } };
      }
      default: {
        if (secret === undefined) throw new Error('no secret');
        const { password, ...hash } = secret;
        return { row: { email, ...hash }, proof: { kind: 'password', email, password } };
      }
    }
  };
}

/** The lines of a file with so many users. Every tenth line holds three users of one person. */
export function* userLines(count: number, make: (number: number) => MadeUser): Generator<string> {
  for (let number = 0, line = 1; number < count; line += 1) {
    const together = line % 10 === 0 ? Math.min(3, count - number) : 1;
    const rows = Array.from({ length: together }, (_, index) => make(number + index).row);
    yield `${JSON.stringify(together === 1 ? rows[0] : { methods: rows })}\n`;
    number += together;
  }
}

/** A hash as Firebase makes it, with parameters that cost next to nothing. */
export function hostedScryptSecret(password: string): Secret {
  const salt = randomBytes(10);
  const separator = Buffer.from(publishedSample.saltSeparator, 'base64');
  const key = scryptSync(password, Buffer.concat([salt, separator]), 32, { N: 2 ** 2, r: 1, p: 1 });
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  const digest = Buffer.concat([cipher.update(Buffer.from(publishedSample.signerKey, 'base64')), cipher.final()]);
  const parts = [
    digest.toString('base64'),
    salt.toString('base64'),
    'm=2',
    'r=1',
    `s=${publishedSample.saltSeparator}`,
  ];
  return { password, passwordHash: `$f_scrypt$${parts.join('$')}`, hashingAlgorithm: 'hosted_scrypt' };
}

function bcryptSecret(password: string): Secret {
  return { password, passwordHash: bcryptHashSync(password, 4).replace(/^\$2[by]/, '$$2a') };
}

function argon2Secret(password: string): Secret {
  return { password, passwordHash: argon2HashSync(password, { memoryCost: 8, timeCost: 1, parallelism: 1 }) };
}

function pool(make: (password: string) => Secret): readonly Secret[] {
  return Array.from({ length: poolSize }, (_, index) =>
    make(`password-${String(index)}-${randomBytes(6).toString('hex')}`),
  );
}
