/** How a user signs in; a user has one way here, since nothing links accounts. */
export type Recipe = 'emailpassword' | 'passwordless' | 'thirdparty';

interface ThirdParty {
  /** Id of the provider. */
  readonly id: string;
  /** Id of the user at the provider. */
  readonly userId: string;
}

export interface UserRecord {
  readonly id: string;
  readonly recipe: Recipe;
  /** Milliseconds since the epoch. */
  readonly timeJoined: number;
  /** Trimmed and in lower case. */
  readonly email: string | null;
  readonly phoneNumber: string | null;
  readonly thirdParty: ThirdParty | null;
  readonly passwordHash: string | null;
  /** Whether the email was verified by whoever created the user. */
  readonly verified: boolean;
}

/** Contacts that may have users. */
interface AccountInfo {
  readonly email?: string | undefined;
  readonly phoneNumber?: string | undefined;
  readonly thirdParty?: ThirdParty | undefined;
}

/** Every user, findable by id and by contact. */
export interface UserRecords {
  /** Adds a user, or replaces the one of the same id. */
  readonly put: (user: UserRecord) => void;
  readonly byId: (id: string) => UserRecord | undefined;
  readonly byEmail: (recipe: 'emailpassword' | 'passwordless', email: string) => UserRecord | undefined;
  readonly byPhoneNumber: (phoneNumber: string) => UserRecord | undefined;
  readonly byThirdParty: (thirdParty: ThirdParty) => UserRecord | undefined;
  /** Users that have any (`union`) or each of the contacts given. */
  readonly byAccountInfo: (info: AccountInfo, union: boolean) => readonly UserRecord[];
  /** How many there are, of the recipes named or of all. */
  readonly count: (recipes: readonly Recipe[]) => number;
  readonly all: () => Iterable<UserRecord>;
}

const recipes: readonly Recipe[] = ['emailpassword', 'passwordless', 'thirdparty'];

/** Keeps users in memory. */
export function createUserRecords(): UserRecords {
  const users = new Map<string, UserRecord>();
  const index = new Map<string, readonly UserRecord[]>();
  const counts = { emailpassword: 0, passwordless: 0, thirdparty: 0 };

  const found = (key: string): readonly UserRecord[] => index.get(key) ?? [];

  const forget = (user: UserRecord): void => {
    for (const key of keysOf(user)) {
      const rest = found(key).filter(({ id }) => id !== user.id);
      if (rest.length === 0) index.delete(key);
      else index.set(key, rest);
    }
    counts[user.recipe] -= 1;
  };

  return {
    put: (user) => {
      const before = users.get(user.id);
      if (before !== undefined) forget(before);
      users.set(user.id, user);
      for (const key of keysOf(user)) index.set(key, [...found(key), user]);
      counts[user.recipe] += 1;
    },
    byId: (id) => users.get(id),
    byEmail: (recipe, email) => found(emailKey(recipe, email))[0],
    byPhoneNumber: (phoneNumber) => found(phoneKey(phoneNumber))[0],
    byThirdParty: (thirdParty) => found(thirdPartyKey(thirdParty))[0],
    byAccountInfo: ({ email, phoneNumber, thirdParty }, union) => {
      const sets = [
        ...(email === undefined ? [] : [recipes.flatMap((recipe) => found(emailKey(recipe, email)))]),
        ...(phoneNumber === undefined ? [] : [found(phoneKey(phoneNumber))]),
        ...(thirdParty === undefined ? [] : [found(thirdPartyKey(thirdParty))]),
      ];
      const any = [...new Set(sets.flat())];
      return union ? any : any.filter((user) => sets.every((set) => set.includes(user)));
    },
    count: (asked) => (asked.length === 0 ? recipes : asked).reduce((sum, recipe) => sum + counts[recipe], 0),
    all: () => users.values(),
  };
}

/** A third-party user is not found by email alone, but is listed by it. */
function keysOf({ recipe, email, phoneNumber, thirdParty }: UserRecord): readonly string[] {
  return [
    ...(email === null ? [] : [emailKey(recipe, email)]),
    ...(phoneNumber === null ? [] : [phoneKey(phoneNumber)]),
    ...(thirdParty === null ? [] : [thirdPartyKey(thirdParty)]),
  ];
}

function emailKey(recipe: Recipe, email: string): string {
  return `${recipe} ${email}`;
}

function phoneKey(phoneNumber: string): string {
  return `phone ${phoneNumber}`;
}

/** JSON keeps apart what a separator could join. */
function thirdPartyKey({ id, userId }: ThirdParty): string {
  return JSON.stringify([id, userId]);
}
