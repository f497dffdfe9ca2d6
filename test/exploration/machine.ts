/** The decisions that an exploration runs: the real ones, or the real ones with one guard taken out of their text. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as gates from '../../src/decision/idempotency/dispatch-check.js';
import * as reservations from '../../src/decision/idempotency/record.js';
import * as settlements from '../../src/decision/idempotency/settlement.js';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

type Reservations = Pick<typeof reservations, 'current' | 'reserve' | 'complete' | 'release' | 'mark' | 'resolve'>;

export interface Machine
  extends Reservations, Pick<typeof settlements, 'settle'>, Pick<typeof gates, 'checkDispatch'> {}

export const realMachine: Machine = { ...reservations, settle: settlements.settle, checkDispatch: gates.checkDispatch };

/** A guard that is taken out of a compiled file of `src/decision/idempotency`. */
export interface Cut {
  readonly file: 'record' | 'settlement' | 'dispatch-check';
  /** Stands in the file. */
  readonly find: string;
  readonly replace: string;
}

/** The real decisions but for these cuts. Throws where one is not to be found: then the guard is another one by now. */
export async function machineWithout(t: Scope, cuts: readonly Cut[]): Promise<Machine> {
  const dir = tempDir(t);
  let machine: Machine = realMachine;
  for (const file of new Set(cuts.map((cut) => cut.file))) {
    const source = join(projectDir, '.build/src/decision/idempotency', `${file}.js`);
    let text = readFileSync(source, 'utf8').replaceAll(
      /from '(\.[^']+)'/g,
      (_, imported: string) => `from '${new URL(imported, pathToFileURL(source)).href}'`,
    );
    for (const cut of cuts.filter((one) => one.file === file)) {
      if (!text.includes(cut.find)) throw new Error(`${file}.js has no ${cut.find}`);
      text = text.replaceAll(cut.find, cut.replace);
    }
    const path = join(dir, `${file}.mjs`);
    writeFileSync(path, text);
    machine = { ...machine, ...((await import(pathToFileURL(path).href)) as Partial<Machine>) };
  }
  return machine;
}
