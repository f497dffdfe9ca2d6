import type { Command } from 'commander';
import {
  completionTree,
  everyCommand,
  type CompletedCommand,
  type CompletedOption,
  type Shell,
  type Value,
} from './tree.js';

/** Writes what a shell needs to complete command lines of this program. */
export function completionScript(shell: Shell, program: Command): string {
  return scripts[shell](completionTree(program));
}

const scripts: Readonly<Record<Shell, (root: CompletedCommand) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Works with bash 3.2, which macOS has, and without the package bash-completion. */
function bashScript(root: CompletedCommand): string {
  const commands = everyCommand(root);
  const paths = commands
    .filter(({ path }) => path !== root.path)
    .map(({ path }) => quote(path))
    .join('|');
  const withValue = commands.flatMap(({ path, options }) =>
    options.flatMap((option) =>
      option.value === null
        ? []
        : spellings(option).map((flag) => ({
            at: quote(`${path}:${flag}`),
            value: option.value,
            isOptional: option.isValueOptional,
          })),
    ),
  );
  const ofKind = (kind: Value['kind']): string =>
    withValue
      .filter(({ value }) => value?.kind === kind)
      .map(({ at }) => at)
      .join('|');
  const choices = withValue.flatMap(({ at, value }) =>
    value?.kind === 'choices' ? [`    ${at}) ${reply(value.choices)}; return ;;\n`] : [],
  );
  const words = commands.map(({ path, commands: below, options, values }) => {
    const offered = [
      ...below.map(({ name }) => name),
      ...values.flatMap(({ value }) => (value.kind === 'choices' ? value.choices : [])),
    ];
    const files = values.some(({ value }) => value.kind === 'file') ? 'yes' : 'no';
    return `    ${quote(path)}) words=${quote(offered.join(' '))} options=${quote(options.flatMap(spellings).join(' '))} files=${files} ;;\n`;
  });
  return `# bash completion for ${root.name}, by "${root.name} completion bash"

_${root.name}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path=${root.name} words= options= files=no i IFS=$' \\t\\n'
  COMPREPLY=()
  # "--config=x" is three words to bash.
  if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path:\${COMP_WORDS[i]}" in
      ${withValue
        .filter(({ isOptional }) => !isOptional)
        .map(({ at }) => at)
        .join('|')}) ((i++)); continue ;;
    esac
    case "$path \${COMP_WORDS[i]}" in
      ${paths}) path="$path \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path:$prev" in
${choices.join('')}    ${ofKind('file')}) _${root.name}_files "$cur"; return ;;
    ${ofKind('free')}) return ;;
  esac
  case "$path" in
${words.join('')}  esac
  if [[ $cur == -* ]]; then words=$options; fi
  COMPREPLY=( $(compgen -W "$words" -- "$cur") )
  if [[ $files == yes && $cur != -* ]]; then _${root.name}_files "$cur"; fi
}

_${root.name}_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=( "\${COMPREPLY[@]}" $(compgen -f -- "$1") )
}

complete -F _${root.name} ${root.name}
`;

  function reply(offered: readonly string[]): string {
    return `COMPREPLY=( $(compgen -W ${quote(offered.join(' '))} -- "$cur") )`;
  }
}

function zshScript(root: CompletedCommand): string {
  const functions = everyCommand(root).map((command) => zshFunction(command, root));
  return `#compdef ${root.name}
# zsh completion for ${root.name}, by "${root.name} completion zsh"

${functions.join('\n')}
if [[ $funcstack[1] == _${root.name} ]]; then
  _${root.name} "$@"
else
  compdef _${root.name} ${root.name}
fi
`;
}

function zshFunction({ path, options, values, commands }: CompletedCommand, root: CompletedCommand): string {
  const name = functionOf(path);
  const specs = options.map((option) => `    ${zshOption(option)} \\\n`).join('');
  if (commands.length === 0) {
    const arguments_ = values.map(
      ({ name: what, value, isRepeated }) =>
        `    ${quote(`${isRepeated ? '*' : ''}:${zshText(what)}:${zshAction(value)}`)} \\\n`,
    );
    return `${name}() {\n  _arguments -s \\\n${specs}${arguments_.join('')}    && return 0\n}\n`;
  }
  const listed = commands.map((child) => `    ${quote(`${child.name}:${zshText(child.about)}`)}\n`).join('');
  const dispatch = commands.map((child) => `    ${child.name}) ${functionOf(child.path)} ;;\n`).join('');
  const offered = path === root.path ? 'command' : `${root.name} command`;
  return `${name}() {
  local curcontext="$curcontext" state line
  local -a commands
  commands=(
${listed}  )
  _arguments -s -C \\
${specs}    '1: :->command' \\
    '*:: :->rest' && return 0
  case $state in
    command) _describe ${quote(offered)} commands ;;
    rest) case $line[1] in
${dispatch}    esac ;;
  esac
}
`;
}

function zshOption({ short, long, about, value, isValueOptional }: CompletedOption): string {
  const text = `[${zshText(about)}]`;
  const what = value === null ? '' : `${isValueOptional ? '::' : ':'}value:${zshAction(value)}`;
  if (short === null) return quote(`${long}${text}${what}`);
  return `${quote(`(${short} ${long})`)}{${short},${long}}${quote(`${text}${what}`)}`;
}

function zshAction(value: Value): string {
  if (value.kind === 'file') return '_files';
  return value.kind === 'choices' ? `(${value.choices.join(' ')})` : ' ';
}

/** Brackets and colons mean something to \`_arguments\`. */
function zshText(text: string): string {
  return text.replace(/[\\[\]:]/g, String.raw`\$&`);
}

function functionOf(path: string): string {
  return `_${path.replaceAll(' ', '_')}`;
}

function fishScript(root: CompletedCommand): string {
  const paths = everyCommand(root)
    .filter(({ path }) => path !== root.path)
    .map(({ path }) => quote(path))
    .join(' ');
  const lines = everyCommand(root).flatMap(({ path, commands, options, values }) => {
    const at = `complete -c ${root.name} -n '__${root.name}_at ${path}'`;
    return [
      ...commands.map((child) => `${at} -a ${child.name} -d ${quote(child.about)}`),
      ...options.map(({ short, long, about, value, isValueOptional }) => {
        const flags = [...(short === null ? [] : [`-s ${short.slice(1)}`]), `-l ${long.slice(2)}`].join(' ');
        return `${at} ${flags}${value === null ? '' : fishValue(value, isValueOptional)} -d ${quote(about)}`;
      }),
      ...values.flatMap(({ value }) =>
        value.kind === 'file'
          ? [`${at} -F`]
          : value.kind === 'choices'
            ? [`${at} -a ${quote(value.choices.join(' '))}`]
            : [],
      ),
    ];
  });
  return `# fish completion for ${root.name}, by "${root.name} completion fish"

function __${root.name}_at
  set -l path ${root.name}
  for word in (commandline -opc)[2..-1]
    contains -- "$path $word" ${paths}; and set path "$path $word"
  end
  test "$path" = "$argv"
end

complete -c ${root.name} -f
${[...new Set(lines)].join('\n')}
`;
}

function fishValue(value: Value, isOptional: boolean): string {
  const takes = isOptional ? '' : ' -r';
  if (value.kind === 'file') return `${takes} -F`;
  return value.kind === 'choices' ? `${takes} -f -a ${quote(value.choices.join(' '))}` : `${takes} -f`;
}

function spellings({ short, long }: CompletedOption): readonly string[] {
  return short === null ? [long] : [short, long];
}

/** For a POSIX shell; fish reads it the same where no backslash stands before a quote. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
