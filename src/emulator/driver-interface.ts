/** Versions of the Core driver interface (CDI) that the emulator speaks, the oldest first. */
export const supportedVersions = [
  '2.16', '2.17', '2.18', '2.19', '2.20', '2.21', '3.0', '3.1', '4.0', '5.0', '5.1', '5.2', '5.3', '5.4',
] as const;

/** The version that brought `useStaticSigningKey`: below it the field is not read and the static key signs. */
const firstWithDynamicKeys = supportedVersions.indexOf('2.21');

/** Whether a `cdi-version` header names a version that the emulator speaks. */
export function isSupported(version: string | readonly string[]): boolean {
  return indexOf(version) >= 0;
}

/** Whether `useStaticSigningKey` counts; a request without `cdi-version` speaks the newest. */
export function supportsDynamicKeys(version: string | readonly string[] | undefined): boolean {
  return version === undefined || indexOf(version) >= firstWithDynamicKeys;
}

function indexOf(version: string | readonly string[]): number {
  return supportedVersions.findIndex((supported) => supported === version);
}
