/** Forms of email addresses, phone numbers and ids, checked before anything is sent. */
import { parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { RowProblem } from './user.js';

/** RFC 5321 §4.5.3.1: a local part, and a whole address without its angle brackets. */
const maxLocalBytes = 64;
const maxEmailBytes = 254;

/** What the Core's columns hold: a Core that is sent more fails on it, as often as it is sent. */
const maxLengths = { thirdPartyId: 28, thirdPartyUserId: 256 } as const;

const localPart = /^[^\s\p{C}<>()[\]\\,;:@"]+$/u;
const domainLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
const topLevelLabel = /^(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})$/i;

/** An email address that the Core and the SDKs take: `local@domain.tld`, the domain in its ASCII form. */
export function readEmail(value: unknown, field: string): Result<string, RowProblem> {
  const allowed =
    'an email address such as ada@example.com, without spaces, its domain in ASCII (xn--…), at most 254 bytes';
  if (typeof value !== 'string' || value === '') return refuse({ field, what: missing(value), allowed });
  return isEmail(value) ? accept(value) : refuse({ field, what: 'is no email address', allowed });
}

/** A phone number in E.164, of a range that is in use. */
export function readPhoneNumber(value: unknown, field: string): Result<string, RowProblem> {
  const allowed = 'a phone number in E.164: + and the country, digits only, such as +4930901820';
  if (typeof value !== 'string' || value === '') return refuse({ field, what: missing(value), allowed });
  if (!/^\+[1-9][0-9]{4,14}$/.test(value)) return refuse({ field, what: 'is not written as E.164', allowed });
  const number = parsePhoneNumberFromString(value);
  return number?.isValid() === true && number.number === value
    ? accept(value)
    : refuse({ field, what: 'is a number that no country has', allowed });
}

/** A provider's name, or a user's id there. */
export function readId(value: unknown, name: keyof typeof maxLengths): Result<string, RowProblem> {
  const field = `thirdParty.${name}`;
  const maxLength = maxLengths[name];
  const allowed = `a text of 1 to ${String(maxLength)} characters without control characters and without spaces around it`;
  if (typeof value !== 'string' || value === '') return refuse({ field, what: missing(value), allowed });
  const isId = value.length <= maxLength && !/[\p{C}]/u.test(value) && value.trim() === value;
  return isId ? accept(value) : refuse({ field, what: 'is no id', allowed });
}

function isEmail(value: string): boolean {
  const at = value.lastIndexOf('@');
  const local = value.slice(0, at);
  const labels = value.slice(at + 1).split('.');
  return (
    at > 0 &&
    Buffer.byteLength(value) <= maxEmailBytes &&
    Buffer.byteLength(local) <= maxLocalBytes &&
    isLocalPart(local) &&
    labels.length > 1 &&
    labels.every((label) => domainLabel.test(label)) &&
    topLevelLabel.test(labels.at(-1) ?? '')
  );
}

function isLocalPart(local: string): boolean {
  return localPart.test(local) && !local.startsWith('.') && !local.endsWith('.') && !local.includes('..');
}

function missing(value: unknown): string {
  return value === undefined || value === null || value === '' ? 'is missing' : 'is no text';
}
