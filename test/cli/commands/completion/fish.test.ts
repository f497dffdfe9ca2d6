import t from 'tap';
import { inFish } from '../../../support/fish.js';
import { checkOffers, completionFolder, quoted } from './completion-checks.js';

const folder = await completionFolder(t, 'fish', 'script.fish');

t.test('fish completes commands, options, choices and files', (t) => {
  checkOffers(t, (line) =>
    inFish(`source script.fish; complete -C ${quoted(line)}`, folder)
      .split('\n')
      .map((offer) => offer.split('\t')[0] ?? ''),
  );
  t.end();
});
