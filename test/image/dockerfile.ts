/** A Dockerfile as its instructions: as much of the format as ours uses. */

export interface Instruction {
  readonly name: string;
  readonly words: string;
}

/** Instructions in order, comments and line continuations taken out. */
export function parseDockerfile(text: string): readonly Instruction[] {
  const lines = text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n');
  return lines.flatMap((line) => {
    const [, name = '', words = ''] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? [];
    return name === '' ? [] : [{ name, words }];
  });
}

/**
 * Values of the arguments that have one, later ones of earlier ones; those that are given count before the defaults.
 */
export function argumentsOf(
  instructions: readonly Instruction[],
  given: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const { words } of instructions.filter(({ name }) => name === 'ARG')) {
    const [name = '', value] = words.split(/=(.*)/s);
    const argument = given[name] ?? (value === undefined ? undefined : expand(value, values));
    if (argument !== undefined) values[name] = argument;
  }
  return values;
}

/** `${NAME}`, `$NAME` and `${NAME:+words}` replaced by what they stand for. */
export function expand(words: string, values: Readonly<Record<string, string>>): string {
  return words
    .replaceAll(/\$\{(\w+):\+([^}]*)\}/g, (_all, name: string, then: string) =>
      (values[name] ?? '') === '' ? '' : then,
    )
    .replaceAll(
      /\$\{(\w+)\}|\$(\w+)/g,
      (_all, braced: string | undefined, bare: string | undefined) => values[braced ?? bare ?? ''] ?? '',
    );
}

/** Instructions of each stage, with what stands before the first one as a stage of its own. */
export function stagesOf(instructions: readonly Instruction[]): readonly (readonly Instruction[])[] {
  const stages: Instruction[][] = [[]];
  for (const instruction of instructions) {
    if (instruction.name === 'FROM') stages.push([]);
    stages.at(-1)?.push(instruction);
  }
  return stages;
}

/** Instructions of a stage by its name, after those of the stages that it is made from; the last stage without one. */
export function stageChain(instructions: readonly Instruction[], name?: string): readonly Instruction[] {
  const stages = stagesOf(instructions).slice(1);
  const stage =
    name === undefined ? stages.at(-1) : stages.find(([from]) => from?.words.endsWith(` AS ${name}`) === true);
  const [from, ...own] = stage ?? [];
  if (from === undefined) return [];
  const [base] = from.words.split(' ');
  return [...stageChain(instructions, base), from, ...own];
}
