import t from 'tap';
import { createHeaderGarbage } from '../../../../src/proxy/inbound/http2/header-garbage.js';

t.test('garbage is collected once many headers came, in large heads or small ones, again and again', (t) => {
  let collected = 0;
  const onHeaders = createHeaderGarbage(() => {
    collected += 1;
  });
  for (let i = 0; i < 14_999; i += 1) onHeaders(20);
  t.equal(collected, 0);
  onHeaders(20);
  t.equal(collected, 1);
  for (let i = 0; i < 1_499; i += 1) onHeaders(200);
  t.equal(collected, 1);
  onHeaders(200);
  t.equal(collected, 2);
  t.end();
});
