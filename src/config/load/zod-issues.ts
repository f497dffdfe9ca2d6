/** Turns what the schema found into problems with places and words. */
import { z } from 'zod';
import { nameOf, type Report } from './report.js';
import { isFaulty, locate, type Path, type SourceNode, type SourceScalar } from './source-tree.js';
import { nearestName } from '../../lib/did-you-mean.js';

type Issue = z.core.$ZodIssue;

/** Where issues came from. */
interface IssueContext {
  readonly schema: z.core.$ZodType;
  /** What the schema read, and where that is in the file. */
  readonly path: Path;
  readonly root: SourceNode;
  readonly report: Report;
}

/** The issues of the alternatives that were meant, in the place of one that says that none fits. */
export function specificIssues(issues: readonly Issue[]): readonly Issue[] {
  return issues.flatMap((issue) => {
    const branch = issue.code === 'invalid_union' ? branchMeant(issue) : null;
    return branch === null
      ? [issue]
      : specificIssues(branch.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })));
  });
}

/** Reports an issue, unless the value it is about could not be read in the first place. */
export function reportIssue(issue: Issue, context: IssueContext): void {
  const within = stepsOf(issue.path);
  const path = [...context.path, ...within];
  const { report, root } = context;
  if (isFaulty(root, path)) return;
  if (issue.code === 'unrecognized_keys') {
    for (const key of issue.keys) reportUnknownKey([...path, key], key, keysAt(context.schema, within), report);
    return;
  }
  const { fault, hint }: Readonly<Record<string, unknown>> = issue.code === 'custom' ? (issue.params ?? {}) : {};
  // Both may quote the value, which is not to be shown where it came from a placeholder.
  if (typeof fault === 'string' && report.mayShow(path)) {
    report.error(path, `${nameOf(path)} ${fault}`, typeof hint === 'string' ? hint : issue.message);
  } else {
    report.error(
      path,
      `${nameOf(path)} is ${isTextForMap(issue, path, root) ? 'a text' : report.show(path)}`,
      issue.message,
    );
  }
}

/** Where keys were meant and a colon is missing, the text may hold a secret. */
function isTextForMap(issue: Issue, path: Path, root: SourceNode): boolean {
  const { node } = locate(root, path);
  return (
    issue.code === 'invalid_type' &&
    (issue.expected === 'object' || issue.expected === 'record') &&
    node?.kind === 'scalar' &&
    typeof node.value === 'string'
  );
}

/** Reports a key that nothing knows, with the one that was probably meant. */
export function reportUnknownKey(path: Path, key: string, known: readonly string[], report: Report): void {
  const near = nearestName(key, known);
  const hint = near === null ? '' : `, did you mean ${JSON.stringify(near)}?`;
  report.keyError(path, `unknown key ${JSON.stringify(key)} in ${nameOf(path.slice(0, -1))}${hint}`, known.join(', '));
}

/** A placeholder that is read as a number or a truth value, and where it stands. */
export interface Coerced {
  readonly path: Path;
  readonly scalar: SourceScalar;
}

/**
 * A placeholder's text as what its key asks for: a number or a truth value. `null` where the issue is about something
 * else or the text reads as neither.
 */
export function coercePlaceholder(issue: Issue, node: SourceNode): Coerced | null {
  // Of alternatives some may be numbers or truth values: a text that none of them takes is no loss.
  if (issue.code !== 'invalid_type' && issue.code !== 'invalid_value' && issue.code !== 'invalid_union') return null;
  const path = stepsOf(issue.path);
  const scalar = locate(node, path).node;
  if (scalar?.kind !== 'scalar' || !scalar.coercible || typeof scalar.value !== 'string') return null;
  const value = coreValue(scalar.value);
  return value === null ? null : { path, scalar: { ...scalar, value } };
}

/** YAML 1.2 core schema: what a plain scalar of this text would be. */
function coreValue(text: string): number | boolean | null {
  if (/^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(text)) return Number(text);
  if (/^(true|True|TRUE)$/.test(text)) return true;
  return /^(false|False|FALSE)$/.test(text) ? false : null;
}

/** The alternative whose kind of value was written: the one that does not complain of the kind itself. */
function branchMeant(issue: Extract<Issue, { code: 'invalid_union' }>): readonly Issue[] | null {
  const isOfItself = (inner: Issue): boolean =>
    inner.path.length === 0 && (inner.code === 'invalid_type' || inner.code === 'invalid_value');
  const fitting = issue.errors.filter((branch) => !branch.some(isOfItself));
  return fitting.length === 1 ? (fitting[0] ?? null) : null;
}

function stepsOf(path: readonly PropertyKey[]): Path {
  return path.map((step) => (typeof step === 'symbol' ? String(step) : step));
}

/** The keys that the schema knows at a place of the file; none where that is no map of fixed keys. */
function keysAt(schema: z.core.$ZodType, path: Path): readonly string[] {
  const inner = unwrap(schema);
  const [step, ...rest] = path;
  if (inner instanceof z.ZodObject) {
    if (step === undefined) return Object.keys(inner.shape);
    const next: unknown = typeof step === 'string' && Object.hasOwn(inner.shape, step) ? inner.shape[step] : undefined;
    return next instanceof z.ZodType ? keysAt(next, rest) : [];
  }
  return inner instanceof z.ZodArray && step !== undefined ? keysAt(inner.element, rest) : [];
}

/** The keys that hold values rather than further keys, anywhere below a schema. */
export function valueKeysOf(schema: z.core.$ZodType): ReadonlySet<string> {
  const found = new Set<string>();
  collectValueKeys(schema, null, found);
  return found;
}

function collectValueKeys(schema: z.core.$ZodType, key: string | null, found: Set<string>): void {
  const inner = unwrapOnce(schema);
  if (inner !== null) collectValueKeys(inner, key, found);
  else if (schema instanceof z.ZodUnion) for (const option of schema.options) collectValueKeys(option, key, found);
  else if (schema instanceof z.ZodObject) {
    for (const [name, child] of Object.entries<z.core.$ZodType>(schema.shape)) collectValueKeys(child, name, found);
  } else if (schema instanceof z.ZodRecord) collectValueKeys(schema.valueType, null, found);
  else if (schema instanceof z.ZodArray) collectValueKeys(schema.element, key, found);
  else if (key !== null) found.add(key);
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let inner = schema;
  for (;;) {
    const next = unwrapOnce(inner);
    if (next !== null) inner = next;
    // A word or a map: only the map has keys.
    else if (inner instanceof z.ZodUnion) {
      inner = inner.options.find((option) => option instanceof z.ZodObject) ?? z.never();
    } else return inner;
  }
}

/** What is inside of a default, an alternative of null or a conversion; `null` where the schema is none of these. */
function unwrapOnce(schema: z.core.$ZodType): z.core.$ZodType | null {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) {
    return schema.unwrap();
  }
  return schema instanceof z.ZodPipe ? schema.in : null;
}
