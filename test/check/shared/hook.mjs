/**
 * Has `import 'tap'` load what stands in for it. In the form of Node's module hooks, of `register` as of
 * `registerHooks`.
 */
const scope = new URL('scope.mjs', import.meta.url).href;

export function resolve(specifier, context, nextResolve) {
  return specifier === 'tap' ? { url: scope, format: 'module', shortCircuit: true } : nextResolve(specifier, context);
}
