/** Whom an approval names. */
import { unusedText } from '../../lib/text.js';
import type { Approval } from './policy.js';

type Named = Pick<Approval, 'subjects' | 'prefixes'>;

/** Tells whether an approval names this subject: to the letter, or by its beginning. */
export function approvesSubject({ subjects, prefixes }: Named, subject: string): boolean {
  return subjects.has(subject) || (prefixes.length > 0 && prefixes.some((prefix) => subject.startsWith(prefix)));
}

/**
 * Subjects that it names: each that stands there, and one for each beginning that stands nowhere. No longer beginning
 * names that one: each ends in a slash.
 *
 * @param taken subjects that something else says something of.
 */
export function sampleSubjects(
  { subjects, prefixes }: Named,
  taken: ReadonlySet<string> = new Set(),
): readonly string[] {
  const samples = prefixes.map((prefix) =>
    unusedText(`${prefix}example`, (text) => subjects.has(text) || taken.has(text)),
  );
  return [...subjects, ...new Set(samples)];
}

/** What it names, for people. */
export function subjectWords({ subjects, prefixes }: Named): readonly string[] {
  return [...subjects, ...prefixes.map(prefixWords)];
}

export function prefixWords(prefix: string): string {
  return `${prefix}…`;
}
