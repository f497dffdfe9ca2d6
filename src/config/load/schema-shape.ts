import { z } from 'zod';
import type { Path } from './source-tree.js';

/** The keys that the schema knows at a place of the file; none where that is no map of fixed keys. */
export function keysAt(schema: z.core.$ZodType, path: Path): readonly string[] {
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
