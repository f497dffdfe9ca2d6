import { createHash, randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Call, Core } from '../context.js';
import type { Code, Contact, Device } from '../storage/passwordless-devices.js';
import { isFrom } from '../cdi-version.js';
import { nullable, optional, readFields, string } from '../http/body.js';
import { json, text, type Message } from '../http/messages.js';
import { recipeUserId, userJson } from './user-json.js';
import type { UserRecord } from '../storage/users.js';
import { contactReaders, normaliseEmail } from './contacts.js';

/** The Core's own default, `passwordless_max_code_input_attempts`. */
const maxAttempts = 5;

const restart = json(200, { status: 'RESTART_FLOW_ERROR' });
const oneContact = 'Please provide exactly one of email, phoneNumber or deviceId';
const oneWay = 'Please provide exactly one of linkCode or deviceId+userInputCode';

/** `POST /recipe/signinup/code`: a code for a new device of a contact, or one more for a device there is. */
export function createCode({ core, fields }: Call): Message {
  const contact = contactReaders(core);
  const asked = readFields(fields, {
    email: optional(contact.email),
    phoneNumber: optional(contact.phoneNumber),
    deviceId: optional(string),
    userInputCode: optional(string),
  });
  if ('refused' in asked) return text(400, asked.refused);
  const { email, phoneNumber, deviceId } = asked;
  if ([email, phoneNumber, deviceId].filter((given) => given !== undefined).length !== 1) return text(400, oneContact);
  core.records.devices.sweep(core.now() - core.codeLifetimeMs);
  const codeFor = deviceId ?? randomBytes(32).toString('base64');
  const before =
    deviceId === undefined
      ? { id: hashOf(codeFor), contact: contactOf(email, phoneNumber), failedAttempts: 0, codes: [] }
      : core.records.devices.byId(hashOf(codeFor));
  if (before === undefined) return restart;
  const userInputCode = asked.userInputCode ?? String(randomInt(1_000_000)).padStart(6, '0');
  if (before.codes.some((code) => code.userInputCode === userInputCode)) {
    return json(200, { status: 'USER_INPUT_CODE_ALREADY_USED_ERROR' });
  }
  const linkCode = randomBytes(32).toString('base64url');
  const code: Code = { codeId: randomUUID(), userInputCode, linkCodeHash: hashOf(linkCode), timeCreated: core.now() };
  core.records.make({ type: 'device', device: { ...before, codes: [...before.codes, code].slice(-maxCodes) } });
  return json(200, {
    status: 'OK',
    preAuthSessionId: before.id,
    codeId: code.codeId,
    deviceId: codeFor,
    userInputCode,
    linkCode,
    timeCreated: code.timeCreated,
    codeLifetime: core.codeLifetimeMs,
  });
}

/** Of one device; a caller that asks for ever may not fill the memory. */
const maxCodes = 16;

/** `POST /recipe/signinup/code/consume`. Success ends every device of the contact: who raced for it starts over. */
export function consumeCode({ core, fields, version }: Call): Message {
  const asked = readFields(fields, {
    preAuthSessionId: string,
    linkCode: optional(string),
    deviceId: optional(string),
    userInputCode: optional(string),
  });
  if ('refused' in asked) return text(400, asked.refused);
  const { linkCode, deviceId, userInputCode } = asked;
  const isTyped = deviceId !== undefined && userInputCode !== undefined;
  if (linkCode === undefined ? !isTyped : deviceId !== undefined || userInputCode !== undefined) {
    return text(400, oneWay);
  }
  const given = linkCode ?? deviceId ?? '';
  if (!/^[A-Za-z0-9+/_-]+=*$/.test(given)) {
    return text(400, `Input encoding error in ${linkCode === undefined ? 'deviceId' : 'linkCode'}`);
  }
  const device =
    linkCode === undefined ? core.records.devices.byId(hashOf(given)) : core.records.devices.byLinkCode(hashOf(given));
  if (device === undefined) return restart;
  const code = device.codes.find((one) =>
    linkCode === undefined ? one.userInputCode === userInputCode : one.linkCodeHash === hashOf(linkCode),
  );
  const isFresh = code !== undefined && code.timeCreated >= core.now() - core.codeLifetimeMs;
  if (linkCode !== undefined && !isFresh) return restart;
  if (device.id !== asked.preAuthSessionId.replaceAll('=', '')) {
    return text(400, "preAuthSessionId and deviceId doesn't match");
  }
  if (!isFresh) return countAttempt(core, device, code !== undefined);
  core.records.make({ type: 'devices_removed', contact: device.contact });
  const existing = userOf(core, device.contact);
  // SuperTokens takes whoever consumed a code for the owner of the address from CDI 4.0 on.
  const proves = 'email' in device.contact && (core.dialect === 'seed' || isFrom('4.0', version));
  const found = existing ?? newUser(core, device.contact);
  const user = { ...found, verified: found.verified || proves };
  if (existing === undefined || existing.verified !== user.verified) core.records.make({ type: 'user', user });
  const consumedDevice = {
    preAuthSessionId: device.id,
    failedCodeInputAttemptCount: device.failedAttempts,
    ...device.contact,
  };
  return json(200, {
    status: 'OK',
    createdNewUser: existing === undefined,
    user: userJson(user, version),
    ...recipeUserId(user, version),
    ...(isFrom('5.0', version) ? { consumedDevice } : {}),
  });
}

/** `PUT /recipe/user` with `rid: passwordless`: adds, replaces or, with `null`, takes away a contact. */
export function updateContacts({ core, fields }: Call, id: string): Message {
  const contact = contactReaders(core);
  const asked = readFields(fields, {
    email: optional(nullable(contact.email)),
    phoneNumber: optional(nullable(contact.phoneNumber)),
  });
  if ('refused' in asked) return text(400, asked.refused);
  const user = core.records.users.byId(id);
  if (user?.recipe !== 'passwordless') return json(200, { status: 'UNKNOWN_USER_ID_ERROR' });
  const email =
    typeof asked.email === 'string' ? normaliseEmail(asked.email) : asked.email === null ? null : user.email;
  const phoneNumber = asked.phoneNumber === undefined ? user.phoneNumber : asked.phoneNumber;
  const { byEmail, byPhoneNumber } = core.records.users;
  if (email !== null && (byEmail('passwordless', email)?.id ?? id) !== id) {
    return json(200, { status: 'EMAIL_ALREADY_EXISTS_ERROR' });
  }
  if (phoneNumber !== null && (byPhoneNumber(phoneNumber)?.id ?? id) !== id) {
    return json(200, { status: 'PHONE_NUMBER_ALREADY_EXISTS_ERROR' });
  }
  if (email === null && phoneNumber === null) {
    return text(400, 'You cannot clear both email and phone number of a user');
  }
  // Codes that were sent to a contact it had, or will have, may not sign in any more.
  for (const contact of changedContacts(user, email, phoneNumber)) {
    core.records.make({ type: 'devices_removed', contact });
  }
  core.records.make({
    type: 'user',
    user: { ...user, email, phoneNumber, verified: user.verified && email === user.email },
  });
  return json(200, { status: 'OK' });
}

/** A wrong or late user input code: after five, the device is gone. */
function countAttempt(core: Core, device: Device, isExpired: boolean): Message {
  const failedAttempts = device.failedAttempts + 1;
  if (failedAttempts >= maxAttempts) {
    core.records.make({ type: 'device_removed', id: device.id });
    return restart;
  }
  core.records.make({ type: 'device', device: { ...device, failedAttempts } });
  return json(200, {
    status: isExpired ? 'EXPIRED_USER_INPUT_CODE_ERROR' : 'INCORRECT_USER_INPUT_CODE_ERROR',
    failedCodeInputAttemptCount: failedAttempts,
    maximumCodeInputAttempts: maxAttempts,
  });
}

function userOf({ records: { users } }: Core, contact: Contact): UserRecord | undefined {
  return 'email' in contact ? users.byEmail('passwordless', contact.email) : users.byPhoneNumber(contact.phoneNumber);
}

function newUser({ now }: Core, contact: Contact): UserRecord {
  return {
    id: randomUUID(),
    recipe: 'passwordless',
    timeJoined: now(),
    email: 'email' in contact ? contact.email : null,
    phoneNumber: 'email' in contact ? null : contact.phoneNumber,
    thirdParty: null,
    passwordHash: null,
    verified: false,
  };
}

function contactOf(email: string | undefined, phoneNumber: string | undefined): Contact {
  return email === undefined ? { phoneNumber: phoneNumber ?? '' } : { email: normaliseEmail(email) };
}

function changedContacts(user: UserRecord, email: string | null, phoneNumber: string | null): readonly Contact[] {
  const emails = email === user.email ? [] : [user.email, email];
  const phoneNumbers = phoneNumber === user.phoneNumber ? [] : [user.phoneNumber, phoneNumber];
  return [
    ...emails.filter((value) => value !== null).map((value) => ({ email: value })),
    ...phoneNumbers.filter((value) => value !== null).map((value) => ({ phoneNumber: value })),
  ];
}

function hashOf(value: string): string {
  return createHash('sha256').update(value.replaceAll('=', '')).digest('base64url');
}
