/** Holds a learnt policy to what the shop is meant to allow. */
import { placeOf } from '../../../src/decision/route/route-table.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { approvesSubject } from '../../../src/decision/route/approval.js';
import { shopPermissions, shopRoutes } from './shop.js';

export interface Score {
  /** Operations whose callers are exactly those that are meant. */
  readonly right: number;
  /** `METHOD path caller` that pass and should not. */
  readonly tooWide: readonly string[];
  /** Those that should pass and do not. */
  readonly tooNarrow: readonly string[];
  /** Learnt routes that are no operation of the shop. */
  readonly invented: readonly string[];
  /** Operations that ask for more permissions than the one that is meant. */
  readonly moreAsked: number;
}

const samples: Readonly<Record<string, string>> = {
  uuid: '0b9c2f0e-1111-4222-a333-444455556666',
  hex: '7fffffffffffff01',
  key: 'SKU-9999',
  date: '2027-01-31',
  slug: 'never-seen-thing',
  number: '123456',
};

/** Asks the policy about each operation, with values that nobody ever sent, for each caller. */
export function scoreOf(
  { table, routes }: Pick<CompiledConfig, 'table' | 'routes'>,
  ignored: ReadonlySet<string>,
): Score {
  const tooWide: string[] = [];
  const tooNarrow: string[] = [];
  const used = new Set<string>();
  let right = 0;
  let moreAsked = 0;
  for (const { method, path, callers, permission } of shopRoutes) {
    const segments = path
      .slice(1)
      .split('/')
      .map((part) => part.replace(/^\{(\w+)\}$/, (_, shape: string) => samples[shape] ?? shape));
    const route = placeOf(table, method, segments)?.route ?? null;
    if (route !== null) used.add(route.name);
    const may = (caller: string): boolean =>
      route?.approvals.some(
        (approval) =>
          approvesSubject(approval, caller) &&
          approval.permissions.every((one) => shopPermissions.get(caller)?.includes(one) === true),
      ) ?? false;
    const wide = [...shopPermissions.keys()].filter((caller) => may(caller) && !callers.includes(caller));
    const narrow = callers.filter((caller) => !may(caller));
    tooWide.push(...wide.map((caller) => `${method} ${path} ${caller}`));
    tooNarrow.push(...narrow.map((caller) => `${method} ${path} ${caller}`));
    if (wide.length + narrow.length === 0) right += 1;
    if (route?.approvals.some(({ permissions }) => permissions.some((one) => one !== permission)) === true) {
      moreAsked += 1;
    }
  }
  const invented = routes.map(({ name }) => name).filter((name) => !used.has(name) && !ignored.has(name));
  return { right, tooWide, tooNarrow, invented, moreAsked };
}
