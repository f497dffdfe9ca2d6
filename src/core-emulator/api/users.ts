import type { Call } from '../context.js';
import { isFrom } from '../cdi-version.js';
import { readFields, string, type Refused } from '../http/body.js';
import { json, text, type Message } from '../http/messages.js';
import { userJson } from './user-json.js';
import type { Recipe, UserRecord } from '../storage/users.js';
import { normaliseEmail } from './contacts.js';
import { updateEmailOrPassword } from './email-password.js';
import { updateContacts } from './passwordless.js';

const recipes: readonly string[] = ['emailpassword', 'passwordless', 'thirdparty'] satisfies Recipe[];

/** `GET /recipe/user` with `rid: emailpassword`. */
export function findByEmail(call: Call): Message {
  const { userId, email } = queryOf(call);
  if (userId !== undefined && email !== undefined) return text(400, 'Please provide only one of userId or email');
  if (userId !== undefined) return byId(call, 'emailpassword', userId);
  if (email === undefined) return text(400, 'Please provide one of userId or email');
  return found(call, call.core.records.users.byEmail('emailpassword', normaliseEmail(email)), 'UNKNOWN_EMAIL_ERROR');
}

/** `GET /recipe/user` with `rid: passwordless`. */
export function findByContact(call: Call): Message {
  const { userId, email, phoneNumber } = queryOf(call);
  if ([userId, email, phoneNumber].filter((given) => given !== undefined).length !== 1) {
    return text(400, 'Please provide exactly one of userId, email or phoneNumber');
  }
  const { users } = call.core.records;
  if (userId !== undefined) return byId(call, 'passwordless', userId);
  if (email !== undefined) {
    return found(call, users.byEmail('passwordless', normaliseEmail(email)), 'UNKNOWN_EMAIL_ERROR');
  }
  return found(call, users.byPhoneNumber(phoneNumber ?? ''), 'UNKNOWN_PHONE_NUMBER_ERROR');
}

/** `GET /recipe/user` with `rid: thirdparty`. */
export function findByThirdParty(call: Call): Message {
  const { userId, thirdPartyId, thirdPartyUserId } = queryOf(call);
  if (userId !== undefined && (thirdPartyId !== undefined || thirdPartyUserId !== undefined)) {
    return text(400, 'Please provide only one of userId or (thirdPartyId & thirdPartyUserId)');
  }
  if (userId !== undefined) return byId(call, 'thirdparty', userId);
  if (thirdPartyId === undefined || thirdPartyUserId === undefined) {
    return text(400, 'Please provide one of userId or (thirdPartyId & thirdPartyUserId)');
  }
  return found(
    call,
    call.core.records.users.byThirdParty({ id: thirdPartyId, userId: thirdPartyUserId }),
    'UNKNOWN_THIRD_PARTY_USER_ERROR',
  );
}

/** `PUT /recipe/user` with `rid: emailpassword`, which is also what a call without one means. */
export function putEmailPasswordUser(call: Call): Message | Promise<Message> {
  const id = userIdIn(call);
  return typeof id === 'string' ? updateEmailOrPassword(call, id) : text(400, id.refused);
}

/** `PUT /recipe/user` with `rid: passwordless`. */
export function putPasswordlessUser(call: Call): Message {
  const id = userIdIn(call);
  return typeof id === 'string' ? updateContacts(call, id) : text(400, id.refused);
}

/** `GET /user/id`, from CDI 4.0 on. */
export function findById(call: Call): Message {
  const { userId } = queryOf(call);
  if (userId === undefined) return text(400, "Field name 'userId' is missing in GET request");
  return found(call, call.core.records.users.byId(userId), 'UNKNOWN_USER_ID_ERROR');
}

/** `GET /users/by-accountinfo`, from CDI 4.0 on. */
export function findByAccountInfo(call: Call): Message {
  const { email, phoneNumber, thirdPartyId, thirdPartyUserId, doUnionOfAccountInfo } = queryOf(call);
  if (doUnionOfAccountInfo === undefined) {
    return text(400, "Field name 'doUnionOfAccountInfo' is missing in GET request");
  }
  if (doUnionOfAccountInfo !== 'true' && doUnionOfAccountInfo !== 'false') {
    return text(400, "'doUnionOfAccountInfo' should be either 'true' or 'false'");
  }
  if ((thirdPartyId === undefined) !== (thirdPartyUserId === undefined)) {
    return text(400, "If 'thirdPartyId' is provided, 'thirdPartyUserId' must also be provided, and vice versa");
  }
  const info = {
    email: email === undefined ? undefined : normaliseEmail(email),
    phoneNumber,
    thirdParty:
      thirdPartyId === undefined || thirdPartyUserId === undefined
        ? undefined
        : { id: thirdPartyId, userId: thirdPartyUserId },
  };
  const users = call.core.records.users.byAccountInfo(info, doUnionOfAccountInfo === 'true');
  return json(200, { status: 'OK', users: users.map((user) => userJson(user, call.version)) });
}

/** `GET /users/count`. */
export function countUsers(call: Call): Message {
  const asked =
    queryOf(call)
      ['includeRecipeIds']?.split(',')
      .map((id) => id.trim()) ?? [];
  const unknown = asked.find((id) => !recipes.includes(id));
  if (unknown !== undefined) return text(400, `Unknown recipe ID: ${/^[\w-]{1,64}$/.test(unknown) ? unknown : ''}`);
  return json(200, { status: 'OK', count: call.core.records.users.count(asked as readonly Recipe[]) });
}

function byId(call: Call, recipe: Recipe, id: string): Message {
  const user = call.core.records.users.byId(id);
  return found(call, user?.recipe === recipe ? user : undefined, 'UNKNOWN_USER_ID_ERROR');
}

function found({ version }: Call, user: UserRecord | undefined, unknown: string): Message {
  return json(200, user === undefined ? { status: unknown } : { status: 'OK', user: userJson(user, version) });
}

/**
 * The Core wants `recipeUserId` from CDI 4.0 on and `userId` before. In the specification's dialect, which knows one
 * name and no versions, either will do.
 */
function userIdIn({ core, fields, version }: Call): string | Refused {
  const wanted = isFrom('4.0', version) ? 'recipeUserId' : 'userId';
  const other = wanted === 'userId' ? 'recipeUserId' : 'userId';
  const isOther =
    core.dialect === 'seed' && fields !== null && !Object.hasOwn(fields, wanted) && Object.hasOwn(fields, other);
  const name = isOther ? other : wanted;
  const id = name === 'userId' ? readFields(fields, { userId: string }) : readFields(fields, { recipeUserId: string });
  if ('refused' in id) return id;
  return 'userId' in id ? id.userId : id.recipeUserId;
}

/** The first value of each parameter. */
function queryOf({ query }: Call): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries([...new Set(query.keys())].map((name) => [name, query.get(name) ?? undefined]));
}
