import t from 'tap';
import { runSeed } from '../draw.js';
import { runServedAnswers } from './served.js';

t.setTimeout(3_600_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

for (let number = 0; number < 20; number++) {
  t.test(`world ${String(number)}: a running proxy judges 300 responses as the model does`, async (t) => {
    t.same((await runServedAnswers(t, runSeed, number, 300)).faults, []);
  });
}
