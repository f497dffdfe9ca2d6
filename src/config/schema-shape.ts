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

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let inner = schema;
  for (;;) {
    if (inner instanceof z.ZodPrefault || inner instanceof z.ZodNullable || inner instanceof z.ZodOptional) inner = inner.unwrap();
    else if (inner instanceof z.ZodPipe) inner = inner.in;
    // A word or a map: only the map has keys.
    else if (inner instanceof z.ZodUnion) inner = inner.options.find(option => option instanceof z.ZodObject) ?? z.never();
    else return inner;
  }
}
