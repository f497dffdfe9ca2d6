/** Searches a copy of the program that lacks one check for what the model says otherwise. */
import type { Scope } from '../../support/scope.js';
import { plantFaults } from '../plant-faults.js';
import { plantedFaults } from './faults.js';
import type { ProfileReport, runProfiles } from './profile-campaign.js';

const planted = plantFaults(plantedFaults);

/** Fixed: a fault that takes all these cases is one that the model hardly sees. */
const seed = 1;
const cases = 40_000;

/** What was found of the fault of this name. */
export async function searchFault(t: Scope, name: string): Promise<ProfileReport> {
  const copy = (await import(`./profile-campaign.js${planted(name)}`)) as {
    readonly runProfiles: typeof runProfiles;
  };
  return copy.runProfiles(t, { seed, cases, maxFaults: 1 });
}
