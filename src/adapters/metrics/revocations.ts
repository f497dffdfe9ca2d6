import { Gauge, type Registry } from 'prom-client';
import { revocationKinds } from '../../decision/revocation/record.js';
import type { RevocationsState } from '../../ports/revocations.js';

/** Shows revocations through the store; no series where none tells of any. */
export function showRevocations(registry: Registry, state: () => RevocationsState | null): void {
  const registers = [registry];
  new Gauge({
    name: 'sallyport_revocations',
    help: 'Revocations through the store that hold here, by kind.',
    aggregator: 'min',
    labelNames: ['kind'],
    registers,
    collect() {
      this.reset();
      const now = state();
      if (now === null) return;
      for (const kind of revocationKinds) {
        this.set({ kind }, now.held.filter((revocation) => revocation.kind === kind).length);
      }
    },
  });
  const reading = (name: string, help: string, value: (now: RevocationsState) => number): void => {
    new Gauge({
      name,
      help,
      aggregator: 'max',
      registers,
      collect() {
        const now = state();
        if (now === null) this.remove();
        else this.set(value(now));
      },
    });
  };
  reading(
    'sallyport_revocations_age_seconds',
    'Since revocations were last read from the store, or since the start.',
    ({ ageMs }) => ageMs / 1000,
  );
  reading(
    'sallyport_revocations_lost',
    'Revocations that hold here and that the store has lost.',
    ({ lost }) => lost.length,
  );
  reading(
    'sallyport_revocations_not_in_force',
    'Records of revocations in the store that are not in force here.',
    ({ notInForce }) => notInForce,
  );
}
