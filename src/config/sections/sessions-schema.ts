/** The section that says where sessions of users come from. */
import type { z } from 'zod';
import { baseUrl, webOrigin } from './address-schemas.js';
import { flag, host, map, text, word } from './scalars.js';

/** As the Core takes them. */
const apiKeyAllowed = 'a key of 20 to 256 letters, digits, `=` and `-`';

export const sessionsSchema = map({
  core_url: baseUrl().describe(
    'Where the Core is. Its keys are fetched from there, and it is asked about the first token after a refresh.',
  ),
  api_key: text(/^[A-Za-z0-9=-]{20,}$/, apiKeyAllowed, 256)
    .nullable()
    .prefault(null)
    .describe('Key for the Core, where it asks for one: a placeholder, such as `${file:/secrets/core-api-key}`.'),
  api_domain: webOrigin().describe(
    'The API domain of the service that makes the sessions. With `api_base_path` it is their exact `iss`.',
  ),
  api_base_path: text(/^\/(?:[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*\/?)?$/, 'a path, such as /auth', 256)
    .prefault('/auth')
    .describe('The API base path of that service.'),
  check_database: flag()
    .prefault(false)
    .describe(
      'Whether the Core is asked about every request, so that a session that was revoked there ends at once. Without, its token lives on until it ' +
        'expires.',
    ),
  cookie_domain: host()
    .nullable()
    .prefault(null)
    .describe(
      'Domain of the session cookies, as that service sets it; a renewed access token goes back in such a cookie. Default: the host of the request.',
    ),
  cookie_same_site: word('lax', 'strict', 'none')
    .prefault('lax')
    .describe('`SameSite` of the session cookies, as that service sets it.'),
});

export type SessionsFile = z.output<typeof sessionsSchema>;
