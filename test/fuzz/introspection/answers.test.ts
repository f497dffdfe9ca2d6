import t from 'tap';
import { runSeed } from '../draw.js';
import { runAnswers } from './answers-campaign.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test(
  'of opaque tokens, those pass of which the issuer says by RFC 7662 or RFC 9701 what the model asks for',
  async (t) => {
    const report = await runAnswers(t, { seed: runSeed, cases: 350 });
    t.same(report.faults, []);
    t.ok(
      report.forwarded > report.cases / 25,
      `${String(report.forwarded)} of ${String(report.cases)} got through, in ${String(report.ways)} ways`,
    );
  },
);
