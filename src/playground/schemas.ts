/** What may be written in the two texts; made when it is first asked for. */
import { annotatedSchema, type JsonSchema } from '../config/docs/json-schema.js';
import { suiteJsonSchema } from '../policy-test/suite/suite.js';

function once(make: () => JsonSchema): () => JsonSchema {
  let made: JsonSchema | null = null;
  return () => (made ??= make());
}

export const configSchema = once(annotatedSchema);
export const testsSchema = once(suiteJsonSchema);
