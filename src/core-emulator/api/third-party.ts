import { randomUUID } from 'node:crypto';
import type { Call } from '../context.js';
import { isFrom } from '../cdi-version.js';
import { boolean, object, optional, readFields, string } from '../http/body.js';
import { json, text, type Message } from '../http/messages.js';
import { recipeUserId, userJson } from './user-json.js';
import type { UserRecord } from '../storage/users.js';
import { contactReaders, normaliseEmail } from './contacts.js';

/**
 * `POST /recipe/signinup`. An existing user's email is updated without a word. SuperTokens wants `isVerified` from CDI
 * 4.0 on and does not read it before; by the specification (docs/specification.md 4.8), which knows no versions, it
 * counts wherever it is given.
 */
export function signInUp({ core, fields, version }: Call): Message {
  const asked = readFields(fields, { thirdPartyId: string, thirdPartyUserId: string, email: object });
  if ('refused' in asked) return text(400, asked.refused);
  const id = readFields(asked.email, { id: contactReaders(core).email });
  if ('refused' in id) return text(400, id.refused);
  const mark = isFrom('4.0', version)
    ? readFields(asked.email, { isVerified: boolean })
    : core.dialect === 'seed'
      ? readFields(asked.email, { isVerified: optional(boolean) })
      : { isVerified: false };
  if ('refused' in mark) return text(400, mark.refused);
  const isVerified = mark.isVerified === true;
  const thirdParty = { id: asked.thirdPartyId, userId: asked.thirdPartyUserId };
  const email = normaliseEmail(id.id);
  const existing = core.records.users.byThirdParty(thirdParty);
  const user: UserRecord =
    existing === undefined
      ? {
          id: randomUUID(),
          recipe: 'thirdparty',
          timeJoined: core.now(),
          email,
          phoneNumber: null,
          thirdParty,
          passwordHash: null,
          verified: isVerified,
        }
      : { ...existing, email, verified: isVerified || (existing.verified && existing.email === email) };
  if (existing === undefined || existing.email !== user.email || existing.verified !== user.verified) {
    core.records.make({ type: 'user', user });
  }
  return json(200, {
    status: 'OK',
    createdNewUser: existing === undefined,
    user: userJson(user, version),
    ...recipeUserId(user, version),
  });
}
