/** Searches a copy of the program that lacks one check for what the model says otherwise. */
import type { Scope } from '../../support/scope.js';
import { findFault, plantFaults, type Found } from '../plant-faults.js';
import { plantedFaults } from './bound-request-faults.js';
import type { runBoundRequests } from './bound-requests.js';

const planted = plantFaults(plantedFaults);

/** Fixed: a fault that takes all these cases is one that the model hardly sees. */
const seed = 1;
const cases = 20_000;

/** What was found of the fault of this name. */
export async function searchFault(t: Scope, name: string): Promise<Found> {
  const copy = (await import(`./bound-requests.js${planted(name)}`)) as {
    readonly runBoundRequests: typeof runBoundRequests;
  };
  return findFault(copy.runBoundRequests(t, seed, cases, 1));
}
