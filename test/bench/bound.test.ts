import t from 'tap';
import { boundTable, measureBound } from './bound.js';

t.test('bound requests are measured beside bearer ones, and wrong proofs and certificates are refused', async (t) => {
  const measured = await measureBound(t, { requests: 40, rounds: 1, connections: 4 });
  t.same(
    measured.map(({ name }) => name),
    [
      'bearer',
      'ES256, memory',
      'Ed25519, memory',
      'RS256, memory',
      'ES256, Redis',
      'Ed25519, Redis',
      'bearer over TLS',
      'certificate, memory',
      'certificate, Redis',
      'certificate of another',
      'wrong signature, ES256',
      'honest ES256, Redis, beside wrong signatures',
    ],
  );
  t.match(
    boundTable(measured),
    /^\| request \| CPU, µs \| more, µs \| median, ms \| 99 %, ms \|\n[^]*\| bearer \| \d+ \| 0 \|/,
  );
});
