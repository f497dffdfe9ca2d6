/** A Dockerfile as its instructions: as much of the format as ours uses. */

export interface Instruction {
  readonly name: string;
  readonly words: string;
}

/** Instructions in order, comments and line continuations taken out. */
export function parseDockerfile(text: string): readonly Instruction[] {
  const lines = text.split('\n').filter((line) => !line.trimStart().startsWith('#')).join('\n').replaceAll(/\\\n\s*/g, '').split('\n');
  return lines.flatMap((line) => {
    const [, name = '', words = ''] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? [];
    return name === '' ? [] : [{ name, words }];
  });
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
