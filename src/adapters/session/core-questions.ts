/** Which sessions the Core is asked about, and when. */

import type { SessionAsker } from '../../ports/auth.js';

export interface QuestionLimits {
  /** Questions at once. */
  readonly maxAsking: number;
  /** Of one user: of its requests, and of what is asked again. */
  readonly maxOfUser: number;
  /** Of what is asked again. */
  readonly maxAgain: number;
}

interface CoreQuestions<T> {
  /** The answer; who asks again waits for a place. `full`, `share`: there is no place at all, or none for this user. */
  readonly put: (accessToken: string, asker: SessionAsker) => Promise<T> | 'full' | 'share';
}

interface Later<T> {
  readonly promise: Promise<T>;
  readonly resolve: (answer: Promise<T>) => void;
}

interface Question<T> {
  answer: Promise<T>;
  /** The answer to the same question, asked anew after this one. */
  next: Later<T> | null;
}

/** What waits for a place. Who waits is open, so that there are no more than open connections. */
type Waiting<T> = Later<T> & { readonly user: string };

/** Places, and what one user has of them. */
interface Places {
  /** Why there is none for this user; `null` where there is one. */
  readonly missing: (user: string) => 'full' | 'share' | null;
  /** What is returned gives it back. */
  readonly take: (user: string) => () => void;
}

/**
 * Puts questions, one at a time about each token: in a place for all who ask about it.
 *
 * @param ask never rejects.
 * @param mayChange whether the answer may be another one from one moment to the next. Who comes while the question is
 *   under way gets the answer to the next one then: what is said of a session counts from before it was asked.
 */
export function createCoreQuestions<T>(
  ask: (accessToken: string) => Promise<T>,
  mayChange: boolean,
  { maxAsking, maxOfUser, maxAgain }: QuestionLimits,
): CoreQuestions<T> {
  const underWay = new Map<string, Question<T>>();
  /** Who came first is first. */
  const waiting = new Map<string, Waiting<T>>();
  const all = createPlaces(maxAsking, Infinity);
  const ofRequests = createPlaces(maxAsking, maxOfUser);
  const again = createPlaces(maxAgain, maxOfUser);

  function joined(question: Question<T>): Promise<T> {
    if (!mayChange) return question.answer;
    question.next ??= later();
    return question.next.promise;
  }

  function begin(accessToken: string, { user, isAgain }: SessionAsker): Promise<T> | 'full' | 'share' {
    const places = isAgain ? again : ofRequests;
    const missing = places.missing(user) ?? all.missing(user);
    if (missing !== null) return missing;
    const giveBack = [all.take(user), places.take(user)];
    const question: Question<T> = { answer: ask(accessToken), next: null };
    underWay.set(accessToken, question);
    waiting.get(accessToken)?.resolve(question.answer);
    waiting.delete(accessToken);
    follow(accessToken, question, () => {
      underWay.delete(accessToken);
      for (const back of giveBack) back();
      beginWaiting();
    });
    return question.answer;
  }

  /** Asks anew as long as somebody came meanwhile, in the same place. */
  function follow(accessToken: string, question: Question<T>, onOver: () => void): void {
    void question.answer.then(() => {
      const { next } = question;
      if (next === null) {
        onOver();
        return;
      }
      question.next = null;
      question.answer = ask(accessToken);
      next.resolve(question.answer);
      follow(accessToken, question, onOver);
    });
  }

  function beginWaiting(): void {
    for (const [accessToken, { user }] of waiting) {
      if (begin(accessToken, { user, isAgain: true }) === 'full') return;
    }
  }

  return {
    put: (accessToken, asker) => {
      const question = underWay.get(accessToken);
      if (question !== undefined) return joined(question);
      const known = waiting.get(accessToken);
      if (asker.isAgain && known !== undefined) return known.promise;
      const begun = begin(accessToken, asker);
      if (typeof begun !== 'string' || !asker.isAgain) return begun;
      const place = { ...later<T>(), user: asker.user };
      waiting.set(accessToken, place);
      return place.promise;
    },
  };
}

function later<T>(): Later<T> {
  let resolve: Later<T>['resolve'] = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}

function createPlaces(max: number, maxOfUser: number): Places {
  const held = new Map<string, number>();
  let taken = 0;
  return {
    missing: (user) => {
      if (taken >= max) return 'full';
      return (held.get(user) ?? 0) >= maxOfUser ? 'share' : null;
    },
    take: (user) => {
      taken += 1;
      held.set(user, (held.get(user) ?? 0) + 1);
      return () => {
        taken -= 1;
        const left = (held.get(user) ?? 0) - 1;
        if (left > 0) held.set(user, left);
        else held.delete(user);
      };
    },
  };
}
