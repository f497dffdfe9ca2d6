/**
 * The kinds of values a config has. Each says in its error what is allowed: the problem adds what was found, and where.
 */
import { isIP } from 'node:net';
import { z } from 'zod';
import { isFetchedUrl, isOrigin, originForm } from './addresses.js';
import { durationMeasure, type Measure, sizeMeasure } from './measures.js';
import { isAddressBlock, isMappedIpv4 } from '../../lib/ip-ranges.js';

/** Milliseconds, written as a whole number with a unit: `250ms`, `5s`, `15m`, `24h`, `7d`. */
export function duration(least: string, most: string): z.ZodType<number, string> {
  return measure(durationMeasure(least, most));
}

/** Bytes, written as a whole number with a unit: `512B`, `64KiB`, `1MiB`. */
export function size(least: string, most: string): z.ZodType<number, string> {
  return measure(sizeMeasure(least, most));
}

/** A whole number. */
export function integer(least: number, most: number): z.ZodType<number, number> {
  const allowed = `a whole number from ${least} to ${most}`;
  return z.int(allowed).min(least, allowed).max(most, allowed).meta({ allowed });
}

/** A number, whole or not. */
export function decimal(least: number, most: number): z.ZodNumber {
  const allowed = `a number from ${least} to ${most}`;
  return z.number(allowed).min(least, allowed).max(most, allowed).meta({ allowed });
}

/** `true` or `false`. */
export function flag(): z.ZodType<boolean, boolean> {
  return z.boolean('true or false').meta({ allowed: 'true or false' });
}

/** One of some words. */
export function word<const Words extends readonly [string, ...string[]]>(
  ...words: Words
): z.ZodType<Words[number], Words[number]> {
  return z.enum(words, words.join(', ')).meta({ allowed: words.map((word) => `\`${word}\``).join(', ') });
}

/** A text that a pattern describes; `allowed` says the pattern in words. */
export function text(pattern: RegExp, allowed: string, maxLength: number): z.ZodString {
  // Says to editors and to Helm, which read no pattern of ours, that an empty text will not do.
  const base = pattern.test('') ? z.string(allowed) : z.string(allowed).min(1, { error: allowed, abort: true });
  return base
    .regex(pattern, allowed)
    .max(maxLength, allowed)
    .refine((value) => !/\p{Cs}/u.test(value), allowed)
    .meta({ allowed });
}

/** A text of one line: what a claim is compared with, or a name for people. */
export function line(maxLength: number): z.ZodString {
  const allowed = `a text of 1 to ${maxLength} characters without controls`;
  return text(/^[^\x00-\x1f\x7f-\x9f]+$/, allowed, maxLength);
}

export const claimValueAllowed =
  `a text, a whole number up to ${Number.MAX_SAFE_INTEGER} (a larger one in quotes, if the token has it as a text) ` +
  'or a truth value';

/** What a claim has to hold, which is compared as it is. Of larger numbers several are read alike (RFC 8259 §6). */
export function claimValue(
  allowed = claimValueAllowed,
): z.ZodType<string | number | boolean, string | number | boolean> {
  return z.union([line(1_024), z.int(allowed), z.boolean()], allowed).meta({ allowed });
}

/** A text that may stand in a header: 1 to `maxLength` visible ASCII characters. */
export function visibleText(maxLength: number): z.ZodString {
  const allowed = `1 to ${maxLength} visible ASCII characters`;
  return text(/^[\x21-\x7e]+$/, allowed, maxLength);
}

/** A moment with its offset from UTC (RFC 3339). */
export function time(): z.ZodISODateTime {
  const allowed = 'a time such as 2026-01-31T12:00:00Z';
  return z.iso.datetime({ offset: true, error: allowed }).meta({ allowed });
}

/**
 * The path of a file on the proxy's machine, from the config's folder where it is relative; read at start, not when the
 * config is checked.
 */
export function filePath(): z.ZodString {
  return text(/^[^\x00-\x1f\x7f-\x9f]+$/, 'the path of a file: absolute, or from the folder of the config', 4_096);
}

/** An address or a host name. */
export function host(): z.ZodType<string, string> {
  const allowed = 'an IP address or a host name';
  // RFC 1123 §2.1 for names; what only looks like an IPv4 address is one to some resolvers.
  const isName = (value: string): boolean =>
    value.length <= 253 &&
    /^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$/.test(value) &&
    !/(^|\.)(0[xX][0-9A-Fa-f]*|[0-9]+)$/.test(value);
  return z
    .string(allowed)
    .refine((value) => isIP(value) !== 0 || isName(value), allowed)
    .meta({ allowed });
}

/** A TCP port; 0 asks the system for a free one. */
export function port(): z.ZodType<number, number> {
  return integer(0, 65_535);
}

/** A list. */
export function list<Item extends z.ZodType>(item: Item, least: 0 | 1, what: string): z.ZodArray<Item> {
  const allowed = `a list of ${what}${least === 1 ? ', at least one' : ''}`;
  return z.array(item, allowed).min(least, allowed).meta({ allowed });
}

/** One value, or a list of them. */
export function oneOrMore(
  item: z.ZodType<string, string>,
  what: string,
): z.ZodType<readonly string[], string | string[]> {
  const allowed = `one or a list of ${what}`;
  return z
    .union([item, list(item, 1, what)], allowed)
    .transform((value) => (typeof value === 'string' ? [value] : value))
    .meta({ allowed });
}

/** A map with these keys and no other. */
export function map<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape, 'a map');
}

function measure({ allowed, pattern, read }: Measure): z.ZodType<number, string> {
  return z
    .string(allowed)
    .regex(pattern, { error: allowed, abort: true })
    .refine((value) => read(value) !== null, allowed)
    .transform((value) => read(value) ?? Number.NaN)
    .meta({ allowed });
}

/** An IP address, or a block of them in CIDR notation. */
export function addressBlock(): z.ZodType<string, string> {
  const allowed = 'an IP address or a CIDR block, such as 10.0.0.0/8';
  return z
    .string(allowed)
    .superRefine((value, context) => {
      if (isAddressBlock(value)) return;
      const fault = `is ${JSON.stringify(value)}, an IPv4 address mapped into IPv6`;
      const hint = 'the IPv4 address or block itself, such as 10.0.0.0/8';
      const params = isMappedIpv4(value) ? { params: { fault, hint } } : {};
      context.addIssue({ code: 'custom', message: allowed, ...params });
    })
    .meta({ allowed });
}

/** An http or https URL as fetched: with a path, without user, password and fragment. */
export function fetchedUrl(): z.ZodType<string, string> {
  const allowed = 'an http or https URL without user, password and fragment';
  return z.string(allowed).max(2_048, allowed).refine(isFetchedUrl, allowed).meta({ allowed });
}

/** An http or https URL that others are built from: without user, password, query and fragment. */
export function baseUrl(): z.ZodType<string, string> {
  const allowed = 'an http or https URL without user, password, query and fragment';
  return z
    .string(allowed)
    .max(2_048, allowed)
    .refine((text) => isFetchedUrl(text) && !/[?;]/.test(text), allowed)
    .meta({ allowed });
}

/** Scheme, host and port, as SuperTokens' SDK takes an API domain. */
export function webOrigin(): z.ZodType<string, string> {
  const allowed = 'https://HOST, without a path, user or query';
  return z
    .string(allowed)
    .refine((text) => text.startsWith('http') && isOrigin(text), allowed)
    .meta({ allowed });
}

/** Where the upstream is: an origin, or a Unix socket. */
export function origin(): z.ZodType<string, string> {
  return z.string(originForm).refine(isOrigin, originForm).meta({ allowed: originForm });
}
