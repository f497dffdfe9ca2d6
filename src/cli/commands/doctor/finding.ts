/** What the doctor found out about one thing. */
export interface Finding {
  /** `ok`; `warning`: it works, but not as safely as it could; `problem`: it does not work, or is not safe. */
  readonly level: 'ok' | 'warning' | 'problem';
  /** What was looked at: `keys core`, `receiver`, `certificate`. */
  readonly subject: string;
  /** What was found. */
  readonly what: string;
  /** What to do about it; empty where all is well. */
  readonly fix: string;
  /** Whether the problem is that something could not be reached. */
  readonly outOfReach: boolean;
}

export function ok(subject: string, what: string): Finding {
  return { level: 'ok', subject, what, fix: '', outOfReach: false };
}

export function warning(subject: string, what: string, fix: string): Finding {
  return { level: 'warning', subject, what, fix, outOfReach: false };
}

export function problem(subject: string, what: string, fix: string): Finding {
  return { level: 'problem', subject, what, fix, outOfReach: false };
}

/** A problem of the network or of the other side: exit code 3 where there is no other problem. */
export function unreachable(subject: string, what: string, fix: string): Finding {
  return { level: 'problem', subject, what, fix, outOfReach: true };
}

/** A finding for programs. */
export function findingAsData({ outOfReach, ...finding }: Finding): object {
  return { ...finding, out_of_reach: outOfReach };
}

/** One line: `ok|warning|problem: subject: what; fix: …`. */
export function formatFinding({ level, subject, what, fix }: Finding): string {
  const text = `${level}: ${subject}: ${what}`;
  return fix === '' ? text : `${text}; fix: ${fix}`;
}
