import t from 'tap';
import {
  circuitPauseMs,
  circuitThreshold,
  closedCircuit,
  tryAcquire,
  isOpen,
  release,
  type CircuitState,
} from '../../../src/decision/limits/circuit-breaker.js';

function failed(times: number, nowMs: number): CircuitState {
  let state = closedCircuit;
  for (let count = 0; count < times; count += 1) state = release(state, false, nowMs);
  return state;
}

t.test('the circuit opens with the fifth failure in a row, not with the fourth', (t) => {
  t.equal(circuitThreshold, 5);
  t.equal(circuitPauseMs, 500);
  t.equal(isOpen(failed(4, 0)), false);
  t.equal(tryAcquire(failed(4, 0), 0).allowed, true);
  t.equal(isOpen(failed(5, 0)), true);
  t.equal(tryAcquire(failed(5, 0), 0).allowed, false);
  t.same(release(failed(4, 0), true, 0), closedCircuit, 'one success, and the count starts anew');
  t.end();
});

t.test('after a pause one call at a time finds out', (t) => {
  const open = failed(5, 1_000);
  t.equal(tryAcquire(open, 1_000 + circuitPauseMs - 1).allowed, false);
  const trial = tryAcquire(open, 1_000 + circuitPauseMs);
  t.equal(trial.allowed, true);
  t.equal(tryAcquire(trial.state, 1_000 + circuitPauseMs).allowed, false, 'one is under way');
  const again = release(trial.state, false, 2_000);
  t.equal(tryAcquire(again, 2_000 + circuitPauseMs - 1).allowed, false, 'a failed one starts the next pause');
  t.equal(tryAcquire(again, 2_000 + circuitPauseMs).allowed, true);
  t.same(release(trial.state, true, 2_000), closedCircuit);
  t.end();
});
