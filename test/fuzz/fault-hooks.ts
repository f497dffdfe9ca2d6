/**
 * Loads the program as often as there are faults, each copy with one check taken out. A module of a copy has
 * `?planted=N` behind its address, and so has whatever it imports of the product and of these tests.
 */
import type { LoadFnOutput, LoadHookContext, ResolveFnOutput, ResolveHookContext } from 'node:module';
import type { PlantedFault } from './profiles/faults.js';

const mark = /\?planted=(\d+)$/;

/** One for all copies: keys are slow to make. */
const shared = /\/(?:key-pool|keys|faults)\.js$/;

const notPlanted = 'its text stands not once';

/** Whether an error says that a fault's text is not where it should be: it crosses threads as its message alone. */
export function isNotPlanted(error: unknown): boolean {
  return error instanceof Error && error.message.includes(notPlanted);
}

let plantedFaults: readonly PlantedFault[] = [];

/** @param faults of whoever registers these hooks. */
export function initialize(faults: readonly PlantedFault[]): void {
  plantedFaults = faults;
}

export async function resolve(
  specifier: string,
  context: ResolveHookContext,
  next: (specifier: string, context: ResolveHookContext) => ResolveFnOutput | Promise<ResolveFnOutput>,
): Promise<ResolveFnOutput> {
  const resolved = await next(specifier, context);
  const planted = mark.exec(context.parentURL ?? '')?.[0];
  const isOurs = resolved.url.startsWith('file:') && !resolved.url.includes('/node_modules/');
  if (planted === undefined || !isOurs || shared.test(resolved.url) || mark.test(resolved.url)) return resolved;
  return { ...resolved, url: resolved.url + planted };
}

export async function load(
  url: string,
  context: LoadHookContext,
  next: (url: string, context: LoadHookContext) => LoadFnOutput | Promise<LoadFnOutput>,
): Promise<LoadFnOutput> {
  const loaded = await next(url, context);
  const fault = plantedFaults[Number(mark.exec(url)?.[1])];
  if (fault === undefined || !url.replace(mark, '').endsWith(fault.file)) return loaded;
  const source = Buffer.from(loaded.source as Uint8Array).toString();
  if (source.split(fault.from).length !== 2) {
    throw new Error(`${fault.name}: ${notPlanted} in ${fault.file}`);
  }
  return { ...loaded, source: source.replace(fault.from, () => fault.to) };
}
