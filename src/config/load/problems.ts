/** What is wrong with a config, and where. */

/** One thing that is wrong (the config is refused) or doubtful (it is not). */
export interface Problem {
  readonly severity: 'error' | 'warning';
  /** The config's name, as the caller of the inspection gave it. */
  readonly file: string;
  /** From 1; where a thing is missing, the place of what should hold it. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
  /** What is wrong, with what was found; never a value that came from a placeholder. */
  readonly message: string;
  /** What would be right. */
  readonly allowed: string;
}

/** Something that is right as it is written, and that whoever reviews the config wants to see. */
export type Note = Pick<Problem, 'line' | 'column' | 'message'>;

/** Writes a problem as one line: `FILE:LINE:COLUMN: error|warning: what; allowed: …`. */
export function formatProblem(problem: Problem): string {
  const { file, line, column, severity, message, allowed } = problem;
  return escapeControls(`${file}:${line}:${column}: ${severity}: ${message}; allowed: ${allowed}`);
}

/** How many errors and warnings there are, in words; empty where there is none. */
export function countProblems(problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  return [...counted(errors, 'error'), ...counted(problems.length - errors, 'warning')].join(', ');
}

function counted(count: number, what: string): readonly string[] {
  return count === 0 ? [] : [`${count} ${what}${count === 1 ? '' : 's'}`];
}

/** Shows control, format and separator characters as escapes: a problem is one line, and prints as what it is. */
export function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xff ? `\\u{${code.toString(16)}}` : `\\x${code.toString(16).padStart(2, '0')}`;
  });
}
