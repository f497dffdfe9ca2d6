/** The real `kubectl`. */
import { fetchedDir, fetchedOr } from './fetched.js';

/** A PATH that has it, and `helm`. */
export function pathWithKubectl(): string {
  const path = process.env['PATH'] ?? '';
  return fetchedOr('kubectl', ['version', '--client']) === 'kubectl' ? path : `${fetchedDir}:${path}`;
}
