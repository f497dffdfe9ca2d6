import { shippedSchema, type JsonSchema } from './json-schema.js';

const keptKeywords = ['$ref', 'type', 'enum', 'const', 'minLength'];

/**
 * The chart's schema of values with the config's in the place of `config`, so that `helm install` refuses a misspelt
 * key. Names and types only, and that a text is not empty: what is required, and patterns that the regular expressions
 * of Go do not have, are left to `sallyport check`.
 */
export function chartValuesSchema(text: string): string {
  const chart = JSON.parse(text) as { readonly properties: object };
  const { definitions, properties } = shippedSchema() as JsonSchema & {
    readonly definitions: Readonly<Record<string, JsonSchema>>;
  };
  const config = { type: 'object', properties: shapesOf(properties ?? {}), additionalProperties: false };
  return `${JSON.stringify({ ...chart, properties: { ...chart.properties, config }, definitions: shapesOf(definitions) }, null, 2)}\n`;
}

function shapesOf(schemas: Readonly<Record<string, JsonSchema>>): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, shapeOf(schema)]));
}

function shapeOf(schema: JsonSchema): JsonSchema {
  const { properties, additionalProperties, items, anyOf } = schema;
  const kept = Object.fromEntries(
    keptKeywords.filter((keyword) => keyword in schema).map((keyword) => [keyword, schema[keyword]]),
  );
  return {
    ...kept,
    ...(properties === undefined ? {} : { properties: shapesOf(properties) }),
    ...(additionalProperties === undefined
      ? {}
      : {
          additionalProperties:
            typeof additionalProperties === 'object' ? shapeOf(additionalProperties) : additionalProperties,
        }),
    ...(items === undefined ? {} : { items: shapeOf(items) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(shapeOf) }),
  };
}
