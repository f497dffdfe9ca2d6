/** What the system says of a file: its permission bits, and the id of the user that it belongs to. */
interface FileAccess {
  readonly mode: number;
  readonly owner: number;
}

const root = 0;

/**
 * Says who else may read or change a file that holds a secret, in words that follow a name of it; `null` where nobody
 * may who should not.
 *
 * Other users may do neither, and the group may not change it. The group may read what belongs to root, or to another
 * user than the one that runs this: that is how a service without rights of its own is given a secret (the `fsGroup` of
 * a pod, `root:sallyport` 0640). On a file of one's own there is no use in it.
 */
export function exposureOf({ mode, owner }: FileAccess, user: number): string | null {
  const shown = `(mode ${formatMode(mode)})`;
  if ((mode & 0o002) !== 0) return `every user of this machine may change ${shown}`;
  if ((mode & 0o004) !== 0) return `every user of this machine may read ${shown}`;
  if ((mode & 0o020) !== 0) return `its group may change ${shown}`;
  const isOwn = owner === user && owner !== root;
  return isOwn && (mode & 0o040) !== 0 ? `its group may read ${shown}` : null;
}

/** What a secret's file should be like. */
export const secretFileRule =
  'mode 0600 or stricter, or 0640 where it is root’s and the group is the one that runs Sallyport; ' +
  'in Kubernetes defaultMode: 0400 and an fsGroup';

/** Says that others than its owner may use a file, in words that follow its path; `null` where nobody else may. */
export function openToOthers(mode: number): string | null {
  return (mode & 0o077) === 0 ? null : `is open to others (mode ${formatMode(mode & 0o777)}); chmod 600 it`;
}

/** Writes a mode as `chmod` takes it: four octal digits. */
export function formatMode(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}
