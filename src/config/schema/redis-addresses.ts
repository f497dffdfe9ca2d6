/** Kinds of values that say where Redis is. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { readUrl } from './addresses.js';
import { host } from './scalars.js';

/** A place to connect to. */
export interface RedisPlace {
  readonly host: string;
  readonly port: number;
}

/** One server, by URL. */
interface RedisServerPlace extends RedisPlace {
  readonly tls: boolean;
  readonly database: number;
}

const standardPort = 6_379;

/** `redis://HOST:PORT/DATABASE`, or `rediss://` for TLS. */
export function redisUrl(): z.ZodType<string, string> {
  const allowed = 'redis://HOST:PORT or rediss://HOST:PORT, with /N for another database than 0';
  return z
    .string(allowed)
    .superRefine((value, context) => {
      if (value.includes('@')) {
        // A config is shown, compared and copied; a password in it is everybody's.
        const message = `${allowed}; the user in username, the password in a file that password_file names`;
        context.addIssue({
          code: 'custom',
          message,
          params: { fault: 'has a user or a password in it, where it would be read with the config' },
        });
      } else if (readRedisUrl(value) === null) {
        context.addIssue({ code: 'custom', message: allowed });
      }
    })
    .meta({ allowed });
}

/** `HOST:PORT`; an IPv6 address in brackets. */
export function nodeAddress(): z.ZodType<string, string> {
  const allowed = 'HOST:PORT, such as redis-0:6379 or [::1]:6379';
  return z
    .string(allowed)
    .refine((value) => readNodeAddress(value) !== null, allowed)
    .meta({ allowed });
}

/** Reads a URL of one server; `null` where it is none. */
export function readRedisUrl(text: string): RedisServerPlace | null {
  const [, scheme, authority = '', database = '0'] =
    /^(redis|rediss):\/\/([^/?#@\\\s]+)(?:\/(0|[1-9][0-9]{0,4})?)?$/.exec(text) ?? [];
  if (scheme === undefined || readUrl(text) === null) return null;
  const place = readNodeAddress(/:[0-9]+$/.test(authority) ? authority : `${authority}:${standardPort}`);
  return place === null ? null : { ...place, tls: scheme === 'rediss', database: Number(database) };
}

/** Reads a host with its port; `null` where it is none. */
export function readNodeAddress(text: string): RedisPlace | null {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):([1-9][0-9]{0,4})$/.exec(text) ?? [];
  const port = Number(digits);
  const name = bracketed ?? plain;
  if (name === undefined || port > 65_535) return null;
  const isSound = bracketed === undefined ? host().safeParse(name).success : isIP(name) === 6;
  return isSound ? { host: name, port } : null;
}
