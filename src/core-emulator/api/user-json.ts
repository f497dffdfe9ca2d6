import { isFrom, type Version } from '../cdi-version.js';
import type { UserRecord } from '../storage/users.js';

const tenantIds = ['public'];

/** A user as answers show it: flat before CDI 4.0, with login methods from there on. */
export function userJson(user: UserRecord, version: Version): Readonly<Record<string, unknown>> {
  return isFrom('4.0', version) ? linkable(user) : flat(user, isFrom('3.0', version));
}

/** What stands beside the user from CDI 4.0 on: which of its login methods was used. */
export function recipeUserId(user: UserRecord, version: Version): Readonly<Record<string, unknown>> {
  return isFrom('4.0', version) ? { recipeUserId: user.id } : {};
}

function flat(user: UserRecord, withTenants: boolean): Readonly<Record<string, unknown>> {
  return { id: user.id, timeJoined: user.timeJoined, ...(withTenants ? { tenantIds } : {}), ...contactsOf(user) };
}

function linkable(user: UserRecord): Readonly<Record<string, unknown>> {
  const { id, timeJoined, email, phoneNumber, thirdParty, recipe, verified } = user;
  return {
    id,
    isPrimaryUser: false,
    tenantIds,
    emails: email === null ? [] : [email],
    phoneNumbers: phoneNumber === null ? [] : [phoneNumber],
    thirdParty: thirdParty === null ? [] : [thirdParty],
    webauthn: { credentialIds: [] },
    loginMethods: [{ tenantIds, recipeUserId: id, verified, timeJoined, recipeId: recipe, ...contactsOf(user) }],
    timeJoined,
  };
}

function contactsOf({ email, phoneNumber, thirdParty }: UserRecord): Readonly<Record<string, unknown>> {
  return {
    ...(email === null ? {} : { email }),
    ...(phoneNumber === null ? {} : { phoneNumber }),
    ...(thirdParty === null ? {} : { thirdParty }),
  };
}
