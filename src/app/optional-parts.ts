/** Parts of the program that most configs have no use for: loaded for those that have. */
import type { CompiledConfig, DecideSettings } from '../config/types.js';
import type { DecideHandler } from '../proxy/server.js';
import type { openEgress } from './egress.js';

export interface OptionalParts {
  /** `null` where nobody asks for decisions. */
  readonly createDecideHandler: ((settings: DecideSettings) => DecideHandler) | null;
  /** `null` where there is no calling side. */
  readonly openEgress: typeof openEgress | null;
}

export async function loadOptionalParts({ decide, egress }: CompiledConfig): Promise<OptionalParts> {
  return {
    createDecideHandler: decide.length === 0 ? null : await loadDecideHandlers(decide),
    openEgress: egress === null ? null : (await import('./egress.js')).openEgress,
  };
}

async function loadDecideHandlers(
  all: readonly DecideSettings[],
): Promise<(settings: DecideSettings) => DecideHandler> {
  const { createDecideHandler } = await import('../proxy/decide/decide-listener.js');
  // What reads and writes Envoy's gRPC.
  const checkMessages = all.some(({ form }) => form === 'envoy')
    ? (await import('../adapters/envoy/check-messages.js')).checkMessages
    : null;
  return (settings) => createDecideHandler(settings, checkMessages);
}
