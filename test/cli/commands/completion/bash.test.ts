import t from 'tap';
import { inBash } from '../../../support/bash.js';
import { checkOffers, completionFolder, quoted } from './completion-checks.js';

const folder = await completionFolder(t, 'bash', 'script.bash');

function offersOf(line: string): readonly string[] {
  // As readline splits it, which counts "=" for a word.
  const words = line.split(/ +|(?==)|(?<==)/);
  return inBash(
    `source script.bash; COMP_WORDS=(${words.map(quoted).join(' ')}); COMP_CWORD=${String(words.length - 1)}
    _sallyport; printf '%s\\n' "\${COMPREPLY[@]}"`,
    folder,
  ).split('\n');
}

t.test('bash completes commands, options, choices and files', (t) => {
  checkOffers(t, offersOf);
  t.end();
});

t.test('bash takes --option=value apart, and keeps a name with a space whole', (t) => {
  t.ok(offersOf('sallyport core --dialect=su').includes('supertokens'));
  t.ok(offersOf('sallyport check with').includes('with space.yaml'));
  t.ok(offersOf('sallyport check su').includes('sub'));
  t.end();
});
