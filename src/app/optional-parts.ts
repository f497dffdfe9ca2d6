/** Parts of the program that most configs have no use for: loaded for those that have. */
import type { CompiledConfig, DecideSettings } from '../config/types.js';
import type { Door } from '../proxy/server.js';
import type { openEgress } from './egress.js';

export interface OptionalParts {
  /** `null` where nobody asks for decisions. */
  readonly makeDoor: ((settings: DecideSettings) => Door) | null;
  /** `null` where there is no calling side. */
  readonly openEgress: typeof openEgress | null;
}

export async function loadOptionalParts({ decide, egress }: CompiledConfig): Promise<OptionalParts> {
  return {
    makeDoor: decide.length === 0 ? null : await loadDoors(decide),
    openEgress: egress === null ? null : (await import('./egress.js')).openEgress,
  };
}

async function loadDoors(all: readonly DecideSettings[]): Promise<(settings: DecideSettings) => Door> {
  const { createDoor } = await import('../proxy/decide/door.js');
  // What reads and writes Envoy's gRPC.
  const checkMessages = all.some(({ form }) => form === 'envoy')
    ? (await import('../adapters/envoy/check-messages.js')).checkMessages
    : null;
  return (settings) => createDoor(settings, checkMessages);
}
