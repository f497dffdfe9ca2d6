import { register } from 'node:module';
import type { PlantedFault } from './profiles/faults.js';
// Copies are told apart by a number: in a shared process others would get those with the faults of somebody else.
import '../support/own-process.js';

/** From now on `?planted=N` behind a module's address loads a copy of the program with the fault of this number. */
export function plantFaults(faults: readonly PlantedFault[]): void {
  register('./fault-hooks.js', import.meta.url, { data: faults });
}
