/** A code of a passwordless sign-in. */
export interface Code {
  readonly codeId: string;
  /** What a user would type. */
  readonly userInputCode: string;
  /** SHA-256 of the link code, in base64url: the code itself is told once. */
  readonly linkCodeHash: string;
  /** Milliseconds since the epoch. */
  readonly timeCreated: number;
}

/** One contact: an email or a phone number, and only one of them. */
export type Contact = { readonly email: string } | { readonly phoneNumber: string };

/** What a passwordless sign-in was begun on, with its codes. */
export interface Device {
  /** SHA-256 of the device id, in base64url; callers know it as `preAuthSessionId`. */
  readonly id: string;
  readonly contact: Contact;
  readonly failedAttempts: number;
  readonly codes: readonly Code[];
}

/** Every device with a code that may still be consumed. */
export interface Devices {
  /** Adds a device, or replaces the one of the same id. */
  readonly put: (device: Device) => void;
  readonly byId: (id: string) => Device | undefined;
  readonly byLinkCode: (linkCodeHash: string) => Device | undefined;
  readonly remove: (id: string) => void;
  /** Removes every device of a contact. */
  readonly removeAll: (contact: Contact) => void;
  /** Removes devices whose codes were all made before a time: an abandoned sign-in would otherwise stay for ever. */
  readonly sweep: (beforeMs: number) => void;
  readonly all: () => Iterable<Device>;
}

/** Keeps devices in memory. */
export function createDevices(): Devices {
  // In the order of their last code, so that a sweep ends at the first one that is young enough.
  const devices = new Map<string, Device>();
  const byLinkCode = new Map<string, string>();
  const byContact = new Map<string, Set<string>>();

  const remove = (id: string): void => {
    const device = devices.get(id);
    if (device === undefined) return;
    devices.delete(id);
    for (const { linkCodeHash } of device.codes) byLinkCode.delete(linkCodeHash);
    const key = contactKey(device.contact);
    const ids = byContact.get(key);
    ids?.delete(id);
    if (ids?.size === 0) byContact.delete(key);
  };

  return {
    put: (device) => {
      remove(device.id);
      devices.set(device.id, device);
      for (const { linkCodeHash } of device.codes) byLinkCode.set(linkCodeHash, device.id);
      const key = contactKey(device.contact);
      byContact.set(key, (byContact.get(key) ?? new Set()).add(device.id));
    },
    byId: (id) => devices.get(id),
    byLinkCode: (linkCodeHash) => devices.get(byLinkCode.get(linkCodeHash) ?? ''),
    remove,
    removeAll: (contact) => {
      for (const id of [...(byContact.get(contactKey(contact)) ?? [])]) remove(id);
    },
    sweep: (beforeMs) => {
      for (const [id, { codes }] of devices) {
        if (codes.some(({ timeCreated }) => timeCreated >= beforeMs)) return;
        remove(id);
      }
    },
    all: () => devices.values(),
  };
}

function contactKey(contact: Contact): string {
  return 'email' in contact ? `email ${contact.email}` : `phone ${contact.phoneNumber}`;
}
