/** Refuses to compile: no route of ours has a schema. */
const noCompiler = () => (): never => {
  throw new Error('a route has a schema, and nothing that compiles it');
};

/**
 * Fastify's option `schemaController` of an application whose routes have no schemas. By itself Fastify loads compilers
 * of validators and of serializers at each start, a tenth of all modules.
 */
export const withoutSchemas = {
  compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler },
} as const;
