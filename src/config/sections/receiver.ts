/** The section that says what is known of the upstream. */
import type { z } from 'zod';
import type { Settings } from '../load/setting-names.js';
import { whenOff, whenOn, type KeyChanges, type Widens } from '../schema/key-changes.js';
import { flag, map } from '../schema/scalars.js';
import { section } from '../schema/section.js';
import type { UpstreamSettings } from '../types.js';
import type { ReceiverRouter } from '../../decision/route/conflicts/find-conflicts.js';

const receiverSchema = map({
  case_sensitive: flag()
    .prefault(false)
    .describe(
      'Set to true where its router is known to tell `/Admin` from `/admin`. Otherwise routes that this would mix up are refused.',
    ),
  strict_slash: flag()
    .prefault(false)
    .describe(
      'Set to true where its router is known to tell `/admin/` from `/admin`, and never to run what is below `/admin/` (`/admin/**`) for `/admin`. Otherwise routes that this would mix up are refused.',
    ),
  format_suffix: flag()
    .prefault(true)
    .describe(
      'Set to false where its router is known not to take `/admin.json` for `/admin`. Otherwise routes that this would mix up are refused.',
    ),
  trailing_dots: flag()
    .prefault(true)
    .describe(
      'Set to false where it is known not to ignore dots and blanks at the end of a segment, and blanks at its beginning. Otherwise routes that this would mix up are refused.',
    ),
  head_as_get: flag()
    .prefault(true)
    .describe(
      'Set to false where it is known not to answer HEAD by what it does for GET. Otherwise routes that this would mix up are refused.',
    ),
  options_as_get: flag()
    .prefault(true)
    .describe(
      'Set to false where it is known not to answer OPTIONS by what it does for other methods. Otherwise a route that lets more callers send OPTIONS than such a method is warned of.',
    ),
  path_info: flag()
    .prefault(true)
    .describe(
      'Set to false where it is known not to take `/admin.php/x` for `/admin.php`, as servers of scripts do (PHP, CGI, ASP.NET), nor `/index.php/admin` for `/admin`, as scripts do that route (Symfony, Laravel). Otherwise routes that the first would mix up are refused, and others warned of.',
    ),
  reads_bodies: flag()
    .prefault(false)
    .describe(
      'Set to true where it is known to read each body to its end, or to close. Otherwise a request with a body has a connection of its own.',
    ),
});

export type ReceiverFile = z.output<typeof receiverSchema>;

/** What the section says of the router; what opt-outs of routes let through, it does not speak of. */
export function receiverRouter(file: ReceiverFile): ReceiverRouter {
  const {
    case_sensitive: caseSensitive,
    strict_slash: strictSlash,
    format_suffix: formatSuffix,
    trailing_dots: trailingDots,
    head_as_get: headAsGet,
    options_as_get: optionsAsGet,
    path_info: pathInfo,
  } = file;
  return { caseSensitive, strictSlash, formatSuffix, trailingDots, headAsGet, optionsAsGet, pathInfo, optOuts: true };
}

/** What is known of its router is compared as it is said: with less to mix up, fewer routes are refused at load. */
function knownOfRouter(key: keyof ReceiverFile, widens: Widens): KeyChanges<object>[string] {
  return {
    of: ({ settings }: { readonly settings: Settings }) => (settings.get('receiver') as ReceiverFile)[key],
    widens,
  };
}

export const receiver = section({
  schema: receiverSchema.prefault({}).describe('What is known of the upstream.'),
  // It is part of what the upstream and the routes compile to.
  compile: (): object => ({}),
  keys: {
    case_sensitive: knownOfRouter('case_sensitive', whenOn),
    strict_slash: knownOfRouter('strict_slash', whenOn),
    format_suffix: knownOfRouter('format_suffix', whenOff),
    trailing_dots: knownOfRouter('trailing_dots', whenOff),
    head_as_get: knownOfRouter('head_as_get', whenOff),
    options_as_get: knownOfRouter('options_as_get', whenOff),
    path_info: knownOfRouter('path_info', whenOff),
    reads_bodies: {
      of: ({ upstream }: { readonly upstream: UpstreamSettings }) => upstream.readsBodies,
      widens: whenOn,
    },
  },
});
