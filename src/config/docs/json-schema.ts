import { z } from 'zod';
import { configSchema } from '../sections/index.js';

/** A part of a JSON Schema, as far as it is read here. */
export interface JsonSchema {
  readonly type?: unknown;
  readonly description?: string;
  /** What is allowed, in words: ours, and not part of the shipped schema. */
  readonly allowed?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly propertyNames?: JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly [keyword: string]: unknown;
}

const placeholder = { $ref: '#/definitions/placeholder' };

/**
 * What a config has at least: as a sidecar, for a proxy that asks, as the calling side alone, or in an application.
 * Whatever else is needed is left to `sallyport check`, since an editor must not mark a config that is right.
 */
const kindsOfConfigs: readonly JsonSchema[] = [
  { required: ['listen', 'upstream', 'routes'], properties: { listen: { required: ['host', 'port'] } } },
  { required: ['decide', 'routes'] },
  { required: ['egress'] },
  { required: ['routes'], properties: { upstream: { not: {} }, listen: { properties: { port: { not: {} } } } } },
];

/** The schema with our words in it: what the reference is written from. */
export function annotatedSchema(): JsonSchema {
  // Draft 7 is what editors' YAML support reads best.
  return z.toJSONSchema(configSchema, { io: 'input', target: 'draft-7' }) as JsonSchema;
}

/** The schema that is shipped, for editors: every value may be a placeholder instead. */
export function shippedSchema(): JsonSchema {
  const { $schema, required: _ofTheSidecar, ...schema } = annotatedSchema();
  return {
    $schema,
    title: 'Sallyport config',
    definitions: {
      placeholder: {
        type: 'string',
        minLength: '${env:A}'.length,
        pattern: '\\$\\{(env|file):[^}]+\\}',
        description:
          'A text with ${env:NAME} or ${file:PATH} in it, which stand for an environment variable and the content of a file.',
      },
    },
    ...withPlaceholders(withOptionalPlace(schema)),
    anyOf: kindsOfConfigs,
  };
}

/** Where `decide` listens, or an application, `listen` only says how requests are judged. */
function withOptionalPlace(schema: JsonSchema): JsonSchema {
  const { listen = {}, ...others } = schema.properties ?? {};
  const { required: _place, ...optional } = listen;
  return { ...schema, properties: { listen: optional, ...others } };
}

function withPlaceholders(schema: JsonSchema): JsonSchema {
  const { allowed, properties, additionalProperties, items, anyOf, propertyNames, ...rest } = schema;
  const described =
    allowed === undefined || rest.description === undefined
      ? rest
      : { ...rest, description: `${rest.description} Allowed: ${allowed}.` };
  if (properties !== undefined || typeof additionalProperties === 'object') {
    return {
      ...described,
      ...(properties === undefined ? {} : { properties: mapValues(properties) }),
      ...(propertyNames === undefined ? {} : { propertyNames: withoutWords(propertyNames) }),
      ...(additionalProperties === undefined
        ? {}
        : {
            additionalProperties:
              typeof additionalProperties === 'object' ? withPlaceholders(additionalProperties) : additionalProperties,
          }),
    };
  }
  if (items !== undefined) return { ...described, items: withPlaceholders(items) };
  if (anyOf !== undefined) return withAlternatives(described, anyOf);
  if (isAnyText(described) || described.type === 'null') return described;
  const { description, default: standard, ...constraints } = described;
  return {
    ...(description === undefined ? {} : { description }),
    ...(standard === undefined ? {} : { default: standard }),
    anyOf: [constraints, placeholder],
  };
}

/** Flattens alternatives, so that the placeholder is one of them, once. */
function withAlternatives(schema: JsonSchema, anyOf: readonly JsonSchema[]): JsonSchema {
  const words = anyOf.map(({ allowed }) => allowed).filter((allowed) => allowed !== undefined);
  const hasWords = schema.description !== undefined && !schema.description.includes(' Allowed: ') && words.length > 0;
  const alternatives = anyOf.flatMap((inner) => {
    const read = withPlaceholders(inner);
    return read.anyOf === undefined ? [read] : read.anyOf;
  });
  const own = alternatives.filter((inner) => inner['$ref'] === undefined);
  return {
    ...schema,
    ...(hasWords ? { description: `${schema.description ?? ''} Allowed: ${words.join(', ')}.` } : {}),
    anyOf: own.length === alternatives.length ? own : [...own, placeholder],
  };
}

function mapValues(properties: Readonly<Record<string, JsonSchema>>): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, withPlaceholders(value)]));
}

function withoutWords({ allowed: _allowed, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/** Whether a text without constraints: then a placeholder is one anyway. */
function isAnyText(schema: JsonSchema): boolean {
  return (
    schema.type === 'string' &&
    Object.keys(schema).every((keyword) => ['type', 'description', 'default', 'maxLength'].includes(keyword))
  );
}
