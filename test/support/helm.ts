/** Real `helm`: renders charts as an operator's does. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { fetchedOr } from './fetched.js';
import { projectDir } from './project-dir.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

export type Values = Readonly<Record<string, unknown>>;

/** One object for Kubernetes. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly [section: string]: unknown;
}

export interface HelmRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const chartDir = join(projectDir, 'helm/sallyport');

const program = fetchedOr('helm', ['version']);

export function helm(t: Scope, ...args: readonly string[]): HelmRun {
  const home = tempDir(t);
  const env = {
    ...process.env,
    HELM_CACHE_HOME: home,
    HELM_CONFIG_HOME: home,
    HELM_DATA_HOME: home,
    KUBECONFIG: '/dev/null',
  };
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env });
  return { code: status, stdout, stderr };
}

/** The chart of somebody else, with ours as its dependency. */
export function parentChart(t: Scope): string {
  const parent = join(tempDir(t), 'orders');
  cpSync(join(projectDir, 'test/helm/parent'), parent, { recursive: true });
  mkdirSync(join(parent, 'charts'));
  symlinkSync(chartDir, join(parent, 'charts/sallyport'));
  return parent;
}

/** `helm template`; throws what it says where it fails. */
export function render(t: Scope, values: Values, chart = chartDir): readonly Manifest[] {
  const { code, stdout, stderr } = helm(
    t,
    'template',
    'shop',
    chart,
    '--namespace',
    'shop',
    '--values',
    valuesFile(t, values),
  );
  if (code !== 0) throw new Error(stderr);
  return manifestsOf(stdout);
}

/** What `helm install` tells the operator at its end. */
export function notes(t: Scope, values: Values): string {
  const { code, stdout, stderr } = helm(
    t,
    'install',
    'shop',
    chartDir,
    '--dry-run=client',
    '--namespace',
    'shop',
    '--values',
    valuesFile(t, values),
  );
  if (code !== 0) throw new Error(stderr);
  return stdout.slice(stdout.indexOf('\nNOTES:\n'));
}

export function valuesFile(t: Scope, values: Values): string {
  const file = join(tempDir(t), 'values.yaml');
  // As Helm reads it: `y` and `yes` are truth values there, and have to stand in quotes as texts.
  writeFileSync(file, stringify(values, { version: '1.1' }));
  return file;
}

export function manifestsOf(text: string): readonly Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) throw new Error(document.errors.map(String).join('\n'));
    const value = document.toJS() as Manifest | null;
    return value === null ? [] : [value];
  });
}

/** The one object of this kind, whose name ends so. */
export function one(manifests: readonly Manifest[], kind: string, nameEnd = ''): Manifest {
  const found = manifests.filter((manifest) => manifest.kind === kind && manifest.metadata.name.endsWith(nameEnd));
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${String(found.length)} objects of kind ${kind}`);
  return found[0];
}
