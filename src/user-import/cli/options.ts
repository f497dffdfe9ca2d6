import { extraIdentifiers, type ExtraIdentifier, type HashRules } from '../row/password-hash.js';

export const formats = ['jsonl', 'csv', 'firebase'] as const;

export type Format = (typeof formats)[number];

export interface ImportOptions {
  readonly curlConfig?: string;
  readonly from?: Format;
  readonly hashConfig?: string;
  readonly hashesFrom?: string;
  readonly acceptHash?: readonly ExtraIdentifier[];
  readonly stripHashPrefix?: true;
  readonly dialect: 'seed' | 'supertokens';
  /** For every call; chosen by what the Core speaks unless given. */
  readonly cdiVersion?: string;
  readonly dryRun?: true;
  readonly resume?: true;
  readonly overwrite?: true;
  readonly concurrency: number;
  readonly rate?: number;
  readonly giveUpAfter: number;
  readonly allowHttp?: true;
  readonly allowPublicCore?: true;
  readonly json?: true;
}

/** Which hashes are taken. */
export function hashRulesOf({ dialect, acceptHash, stripHashPrefix }: ImportOptions): HashRules {
  return {
    accepted: new Set(dialect === 'supertokens' ? extraIdentifiers : (acceptHash ?? [])),
    stripPrefix: stripHashPrefix === true,
  };
}

export function formatOf(file: string, from: Format | undefined): Format {
  return from ?? (/\.csv$/i.test(file) ? 'csv' : 'jsonl');
}

/** Says which options do not go together; `null` where they do. */
export function optionProblem(file: string, options: ImportOptions): string | null {
  const format = formatOf(file, options.from);
  if (options.curlConfig === undefined && options.dryRun !== true) {
    return 'import needs --curl-config FILE: where the Core is and its API key; or --dry-run';
  }
  // The original of returned rows may be an export.
  if (options.hashConfig === undefined && format === 'firebase') {
    return 'a Firebase export needs --hash-config FILE: the hash parameters that its console shows';
  }
  if (options.hashConfig !== undefined && format !== 'firebase' && options.hashesFrom === undefined) {
    return '--hash-config goes with --from firebase only';
  }
  if (options.hashesFrom !== undefined && format !== 'csv') {
    return '--hashes-from goes with a CSV of rejected rows only';
  }
  return null;
}
