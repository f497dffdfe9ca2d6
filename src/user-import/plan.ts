import { talliedKinds } from './totals.js';
import { createLosses, type Loss } from './losses.js';
import type { Unit } from './row/rows.js';
import { kindOf, problemText, type UserKind } from './row/user.js';

/** What a file asks for, before anything is sent. */
export interface Plan {
  /** Users, good and bad. */
  readonly users: number;
  readonly problems: number;
  readonly byKind: ReadonlyMap<UserKind | 'unreadable', number>;
  /** What good rows say and no call of the Core carries, by field. */
  readonly lost: ReadonlyMap<string, Loss>;
  /** Third-party users whose email is verified, which not every version of the driver interface carries. */
  readonly verified: number;
}

/** Reads everything once; `onProblem` is told of each bad row. */
export async function makePlan(
  units: AsyncIterable<Unit>,
  onProblem: (unit: Unit, problem: string) => void,
): Promise<Plan> {
  const byKind = new Map<UserKind | 'unreadable', number>();
  const losses = createLosses();
  let users = 0;
  let verified = 0;
  for await (const unit of units) {
    const kind = unit.content.ok ? kindOf(unit.content.value) : 'unreadable';
    byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
    users += 1;
    if (!unit.content.ok) onProblem(unit, problemText(unit.content.error));
    else {
      losses.add(unit.lost, unit.line);
      if (unit.content.value.kind === 'third_party' && unit.content.value.isVerified) verified += 1;
    }
  }
  return { users, problems: byKind.get('unreadable') ?? 0, byKind, lost: losses.byField(), verified };
}

/** Kinds that a plan has, in the order in which they are shown. */
export function plannedKinds({ byKind }: Plan): readonly (readonly [UserKind | 'unreadable', number])[] {
  return talliedKinds.flatMap((kind) => (byKind.has(kind) ? [[kind, byKind.get(kind) ?? 0] as const] : []));
}
