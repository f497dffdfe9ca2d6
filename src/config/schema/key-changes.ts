/** What it means that a key of the config says something else: to a reload, and to `diff`. */

/** Whether the second value lets more through than the first, or guards less. */
export type Widens = (from: unknown, to: unknown) => boolean;

/** What a change of one key means. Without any of these: a reload takes it over, and `diff` says nothing of it. */
interface KeyChange<Compiled> {
  /** It counts at start only: a reload goes on with what is open, and says that a restart is needed. */
  readonly restart?: true;
  /**
   * Returns what is compared, of the whole compiled config. `undefined` where the key says nothing: then it is not
   * compared. What is compared for a restart has to be a plain value.
   */
  of?(config: Compiled): unknown;
  /** Where `diff` compares and shows something else than `of`: no secret. */
  shown?(config: Compiled): unknown;
  /** What `diff` compares besides and shows to nobody: a part that may be secret. */
  hidden?(config: Compiled): unknown;
  /** When a change lets more through: `diff` shows the key where this is given. */
  readonly widens?: Widens;
  /** What `diff` calls it, from its section; its key unless given. */
  readonly shownAs?: string;
  /** It stands for all keys below it. */
  readonly whole?: true;
}

/** The keys of a section, from the section: `tls.cert_file`; an empty one is the section itself. */
export type KeyChanges<Compiled> = Readonly<Record<string, KeyChange<Compiled>>>;

/** A reload takes the key over, and nobody comes through or is kept out by it: `diff` does not compare it. */
export const reloaded: KeyChange<object> = {};

/** What is said of another key, or of the routes it is part of, says it of this one too. */
export const saidByAnother: KeyChange<object> = {};

export const always: Widens = () => true;
export const never: Widens = () => false;
export const whenMore: Widens = (from, to) => Number(to) > Number(from);
export const whenLess: Widens = (from, to) => Number(to) < Number(from);
export const whenAdded: Widens = (from, to) => listOf(to).some((item) => !listOf(from).includes(item));
export const whenRemoved: Widens = (from, to) => whenAdded(to, from);
/** None is no limit at all. */
export const whenLimitRises: Widens = (from, to) => to === null || (from !== null && Number(to) > Number(from));
export const whenOn: Widens = (_from, to) => to === true;
export const whenOff: Widens = (from) => from === true;

/** What is shown to others is another one, or there is one now. */
export const whenGiven: Widens = (_from, to) => to !== null;

/** There is none any more. */
export const whenGone: Widens = (_from, to) => to === null;

/** What was asked for is asked for no more. */
export const whenReplaced: Widens = (from) => from !== null;

/** Later words let through more. */
export const towards =
  (...words: readonly unknown[]): Widens =>
  (from, to) =>
    words.indexOf(to) > words.indexOf(from);

/** Returns a URL without user and query, which may be secret. */
export function withoutSecrets(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** Returns what `withoutSecrets` leaves out. */
export function secretsIn(url: string): string {
  const { username, password, search } = new URL(url);
  return `${username}:${password}${search}`;
}

/** Returns the items of a list; none of anything else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
