/** `Proxy-Status` (RFC 9209): by a member of ours a caller tells our answers from the upstream's. */
import type { ProxyError } from '../denial.js';
import { trimBlanks } from '../../lib/text.js';

const ownMember = 'sallyport';

/** The value that our own responses carry. */
export function proxyStatus(error: ProxyError): string {
  return `${ownMember}; error=${error}`;
}

/**
 * Removes members of our name from an upstream's value; `null` where nothing is left, or where the value is no list of
 * which one could tell the members apart.
 */
export function withoutOwnMember(value: string): string | null {
  const members = listMembers(value);
  if (members === null) return null;
  const kept = members.filter((member) => !isOwn(member));
  if (kept.length === members.length) return value;
  return kept.length === 0 ? null : kept.join(', ');
}

/** Whether a value names a Sallyport among those that a response came through. */
export function namesSallyport(value: string): boolean {
  return listMembers(value)?.some(isOwn) === true;
}

/** A member is named by a token or a string (RFC 9209 §2); our name needs no escapes in either. */
function isOwn(member: string): boolean {
  const [name = ''] = member.split(';');
  return trimBlanks(name).replaceAll('"', '').toLowerCase() === ownMember;
}

/** Splits at the commas outside of strings (RFC 9651 §3.3.3), or returns `null` where a string does not end. */
function listMembers(value: string): readonly string[] | null {
  const members: string[] = [];
  let start = 0;
  let inString = false;
  for (let i = 0; i < value.length; i++) {
    const character = value[i];
    if (character === '"') inString = !inString;
    else if (inString && character === '\\') i++;
    else if (!inString && character === ',') {
      members.push(trimBlanks(value.slice(start, i)));
      start = i + 1;
    }
  }
  members.push(trimBlanks(value.slice(start)));
  return inString ? null : members;
}
