import t from 'tap';
import { runSeed } from '../draw.js';
import { runServed } from './served.js';

t.setTimeout(3_600_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

for (let number = 0; number < 40; number++) {
  t.test(`world ${String(number)}: a running proxy judges 300 tokens as the model does`, async (t) => {
    t.same((await runServed(t, runSeed, number, 300)).faults, []);
  });
}
