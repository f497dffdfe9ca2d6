import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Types a line and a tab into a real zsh on a terminal of its own, where alone completion works, and prints what it
 * offers. What takes offers, `compadd`, is put in front of the real one; with -O, -A and -D that only asks.
 */
const driver = [
  'zmodload zsh/zpty',
  'zpty shell zsh -f -i',
  'zpty -w shell "fpath=($1 \\$fpath); PROMPT=; cd $1; autoload -Uz compinit; compinit -u -D"',
  "zpty -w shell \"zstyle ':completion:*' insert-tab false; bindkey '^I' complete-word\"",
  "zpty -w shell 'compadd() {",
  '  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return $?; fi',
  '  typeset -a offers; builtin compadd -A offers "$@"; for offer in $offers; do print -r -- "offer $offer"; done',
  "}'",
  'zpty -w shell \'over() { print -r -- "all of ""them"; exit }; comppostfuncs=(over)\'',
  'zpty -w shell \'print -r -- "re""ady"\'',
  'zpty -r -m shell REPLY "*ready*"',
  'zpty -n -w shell "$2"$\'\\t\'',
  'while zpty -r shell REPLY; do',
  '  print -r -- "$REPLY"',
  '  [[ $REPLY == *"all of them"* ]] && break',
  'done',
].join('\n');

/** @param folder has the function, in a file of its name. */
export function offersOfZsh(folder: string, line: string): readonly string[] {
  const file = join(folder, 'driver.zsh');
  writeFileSync(file, driver);
  const output = execFileSync('zsh', ['-f', file, folder, line], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, HOME: folder },
  });
  return [...output.matchAll(/offer ([^\r\n]+)/g)].map(([, offer = '']) => offer);
}
