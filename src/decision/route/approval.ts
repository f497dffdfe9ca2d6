/** Whom an approval names. */
import type { Approval } from './policy.js';

type Named = Pick<Approval, 'subjects' | 'prefixes'>;

/** Tells whether an approval names this subject: to the letter, or by its beginning. */
export function approvesSubject({ subjects, prefixes }: Named, subject: string): boolean {
  return subjects.has(subject) || (prefixes.length > 0 && prefixes.some((prefix) => subject.startsWith(prefix)));
}

/** Subjects that it names: each that stands there, and one for each beginning. */
export function sampleSubjects({ subjects, prefixes }: Named): readonly string[] {
  return [...new Set([...subjects, ...prefixes.map((prefix) => `${prefix}example`)])];
}

/** What it names, for people. */
export function subjectWords({ subjects, prefixes }: Named): readonly string[] {
  return [...subjects, ...prefixes.map(prefixWords)];
}

export function prefixWords(prefix: string): string {
  return `${prefix}…`;
}
