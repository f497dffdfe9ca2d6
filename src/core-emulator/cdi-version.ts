/** Versions of the Core driver interface (CDI) that the emulator speaks, the oldest first. */
export const supportedVersions = [
  '2.16',
  '2.17',
  '2.18',
  '2.19',
  '2.20',
  '2.21',
  '3.0',
  '3.1',
  '4.0',
  '5.0',
  '5.1',
  '5.2',
  '5.3',
  '5.4',
] as const;

export type Version = (typeof supportedVersions)[number];

/** What a request without `cdi-version` speaks, as in the Core. */
export const newestVersion: Version = '5.4';

/** The version that a `cdi-version` header names; `null` where the emulator does not speak it. */
export function versionOf(header: string | readonly string[] | undefined): Version | null {
  if (header === undefined) return newestVersion;
  return supportedVersions.find((supported) => supported === header) ?? null;
}

/** Whether a version is `first` or a later one. */
export function isFrom(first: Version, version: Version): boolean {
  return supportedVersions.indexOf(version) >= supportedVersions.indexOf(first);
}
