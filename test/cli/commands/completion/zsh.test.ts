import t from 'tap';
import { offersOfZsh } from '../../../support/zsh.js';
import { checkOffers, completionFolder } from './completion-checks.js';

const folder = await completionFolder(t, 'zsh', '_sallyport');

t.test('zsh completes commands, options, choices and files', (t) => {
  checkOffers(t, (line) => offersOfZsh(folder, line));
  t.end();
});
