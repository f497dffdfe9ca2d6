import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { projectDir } from '../support/project-dir.js';

/** Where a status differs from the published schema, members that the schema does not describe included. */
export function statusProblems(status: unknown): readonly unknown[] {
  return schema.safeParse(status).error?.issues ?? [];
}

const schema = z.fromJSONSchema(
  closed(JSON.parse(readFileSync(join(projectDir, 'docs/status.schema.json'), 'utf8'))) as never,
);

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, closed(member)]));
  return 'properties' in value ? { ...members, additionalProperties: false } : members;
}
