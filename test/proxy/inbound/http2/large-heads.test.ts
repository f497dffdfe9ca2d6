import t from 'tap';
import { createLargeHeads } from '../../../../src/proxy/inbound/http2/large-heads.js';

t.test('garbage is collected once many headers of large heads came, again and again, and never for usual ones', (t) => {
  let collected = 0;
  const onHeaders = createLargeHeads(() => {
    collected += 1;
  });
  for (let i = 0; i < 100_000; i += 1) onHeaders(64);
  t.equal(collected, 0);
  for (let i = 0; i < 1_000; i += 1) onHeaders(200);
  t.equal(collected, 1);
  for (let i = 0; i < 999; i += 1) onHeaders(200);
  t.equal(collected, 1);
  onHeaders(200);
  t.equal(collected, 2);
  t.end();
});
