import type { Argument, Command, Option } from 'commander';
import { configNote, configVariable, defaultConfig } from '../config/argument.js';
import { textOf, type CommandText } from '../definition.js';

/** Writes `docs/cli.md`: every command, from the commands themselves. */
export function commandReference(program: Command): string {
  const help = program.createHelp();
  const commands = help.visibleCommands(program).filter((command) => textOf(command) !== undefined);
  const groups = [...new Set(commands.map((command) => command.helpGroup()))];
  const listed = groups.flatMap((group) =>
    commands
      .filter((command) => command.helpGroup() === group)
      .map(
        (command) =>
          `| ${group.replace(/:$/, '')} | [\`${command.name()}\`](#${command.name()}) | ${command.summary()} |\n`,
      ),
  );
  return [
    introduction,
    `| | command | |\n| --- | --- | --- |\n${listed.join('')}`,
    common,
    ...commands.flatMap((command) => sections(command, '##')),
  ].join('\n');
}

const introduction = `# Commands

\`npm run generate\` writes this page from the commands: what it says is what \`sallyport COMMAND --help\` says. \`sallyport --version\` prints the
version, the commit that it was built of, and the version of Node.js.
`;

const common = `**The config.** Commands that read one take it as \`FILE\` or as \`--config FILE\`; \`-\` is standard input. Where neither is given, it is the
file that \`$${configVariable}\` names, else \`./${defaultConfig}\`. \`serve\` takes no standard input, for it reads its config again when that changes.
Relative paths in a config start from its own folder; from standard input, from the working folder.

**Answers** go to standard output, everything said to people to standard error. An error is one line that begins with \`error:\`, or with its place in a file
(\`FILE:LINE:COLUMN: error:\`). Commands that print data have \`--json\`.

**Exit codes** are the same everywhere: 0 yes, or done; 1 the answer is no; 2 usage, or a file that cannot be read as it is; 3 something needed is out of reach, or the answer could not be written, as to a full disk.

**Secrets** never come from arguments, which every user of a machine can read: tokens come from standard input, keys from files.
`;

function sections(command: Command, heading: string, above = 'sallyport'): readonly string[] {
  const text = textOf(command);
  if (text === undefined) return [];
  const path = `${above} ${command.name()}`;
  const title = heading === '##' ? command.name() : path.replace(/^sallyport /, '');
  const parts = [
    `${heading} ${title}\n`,
    `\`${path} ${command.usage()}\`\n`,
    `${text.about}\n`,
    table(command),
    ...(text.notes ?? []).filter((note) => note !== configNote).map((note) => `${note}\n`),
    examples(text),
    `Exit code: ${Object.entries(text.exitCodes)
      .map(([code, meaning]) => `${code} ${meaning}`)
      .join('; ')}.\n`,
    `More: [${text.page}](${linkTo(text.page)}).\n`,
  ];
  return [...parts, ...command.commands.flatMap((child) => sections(child, `${heading}#`, path))];
}

function table(command: Command): string {
  const rows = [
    ...command.registeredArguments.map((argument) =>
      row(valueName(argument), `${argument.description}${notesOf(argument)}`),
    ),
    ...command.options.map((option) => row(option.flags, `${option.description}${notesOf(option)}`)),
  ];
  return rows.length === 0 ? '' : `| argument, option | |\n| --- | --- |\n${rows.join('')}`;
}

function valueName(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function row(name: string, text: string): string {
  return `| \`${name}\` | ${text.replaceAll('|', '\\|')} |\n`;
}

function notesOf({ defaultValue, defaultValueDescription, argChoices }: Argument | Option): string {
  const choices = argChoices === undefined ? [] : [`one of ${argChoices.join(', ')}`];
  const standard: unknown = defaultValueDescription ?? defaultValue;
  const told = typeof standard === 'string' || typeof standard === 'number' ? [`default ${String(standard)}`] : [];
  const notes = [...choices, ...told];
  return notes.length === 0 ? '' : ` (${notes.join('; ')})`;
}

function examples({ examples: shown }: CommandText): string {
  return shown
    .map(
      ([purpose, lines]) =>
        `- ${purpose}: ${lines
          .replaceAll(/ \\\n */g, ' ')
          .split(/\n */)
          .map((line) => `\`${line}\``)
          .join(', ')}\n`,
    )
    .join('');
}

/** From the folder of the page. */
function linkTo(page: string): string {
  return page.startsWith('docs/') ? page.slice('docs/'.length) : `../${page}`;
}
