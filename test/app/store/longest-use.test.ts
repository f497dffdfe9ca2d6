import t from 'tap';
import { longestUseMs } from '../../../src/app/store/store.js';
import { compiled } from '../../proxy/harness.js';

t.test('what was used before a fail-over is refused for as long as it may come again', (t) => {
  const use = (issuer: object, dpop: object | null): number =>
    longestUseMs(compiled({ issuers: { core: issuer }, listen: { dpop }, store: { memory: {} } }));
  const origins = ['https://orders.example'];
  const short = { max_lifetime: '30s', clock_skew: '2s' };
  t.equal(use(short, null), 34_000);
  t.equal(use(short, { origins }), 70_000, 'a proof that is used with tokens of a short life');
  t.equal(use(short, { origins, max_age: '10m', clock_skew: '60s' }), 720_000);
  t.equal(use({ max_lifetime: '1h', clock_skew: '0s' }, { origins }), 3_600_000);
  t.end();
});
