/** Kinds of values that are addresses: URLs and IP blocks. */
import { z } from 'zod';
import { isAddressBlock, isMappedIpv4 } from '../../lib/ip-ranges.js';
import { isFetchedUrl, isOrigin, originForm } from './addresses.js';

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
