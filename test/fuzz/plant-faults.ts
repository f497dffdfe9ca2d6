import { register } from 'node:module';
import type { Test as Tap } from 'tap';
import { isNotPlanted } from './fault-hooks.js';
import type { PlantedFault } from './profiles/faults.js';
// Copies are told apart by a number: in a shared process others would get those with the faults of somebody else.
import '../support/own-process.js';
import '../support/campaign.js';

/**
 * From now on `?planted=N` behind a module's address loads a copy of the program with the fault of this number. Returns
 * what stands behind it for a fault of this name.
 */
export function plantFaults(faults: readonly PlantedFault[]): (name: string) => string {
  register('./fault-hooks.js', import.meta.url, { data: faults });
  return (name) => {
    const index = faults.findIndex((fault) => fault.name === name);
    if (index < 0) throw new Error(`no fault ${name}`);
    return `?planted=${String(index)}`;
  };
}

export interface Found {
  readonly cases: number;
  readonly faults: readonly unknown[];
}

/** What a search says. A fault may throw where nothing should, but not where it is planted. */
export async function findFault(search: Promise<Found>): Promise<Found> {
  return search.catch((error: unknown) => {
    if (error instanceof SyntaxError || isNotPlanted(error)) throw error;
    return { cases: 0, faults: [String(error)] };
  });
}

/** Plants each fault, and tests that `search` finds it in the copy of a module that it loads with what it is given. */
export function testPlantedFaults(
  t: Tap,
  faults: readonly PlantedFault[],
  search: (planted: string) => Promise<Found>,
): void {
  const planted = plantFaults(faults);
  for (const { name } of faults) {
    t.test(`it is found that ${name}`, async (t) => {
      const found = await findFault(search(planted(name)));
      t.ok(found.faults.length > 0, `after ${String(found.cases)} cases`);
    });
  }
}
