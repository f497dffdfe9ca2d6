import type { CompiledConfig } from '../config/compiled.js';

type Routes = Pick<CompiledConfig, 'routes'>;

/** Whether any route needs a store. */
export function reserves({ routes }: Routes): boolean {
  return routes.some(({ reservation }) => reservation !== null);
}

/**
 * Operations that keys were reserved under and no longer are: a retry of what was sent under one of them is a new request.
 */
export function droppedOperations(before: Routes, after: Routes): readonly string[] {
  const kept = operationsOf(after);
  return [...operationsOf(before)].filter((operation) => !kept.has(operation));
}

function operationsOf({ routes }: Routes): ReadonlySet<string> {
  return new Set(routes.flatMap(({ reservation }) => (reservation === null || reservation.key === null ? [] : [reservation.operation])));
}
