/** Holds manifests to the schemas of Kubernetes and the Prometheus operator. */
import { join } from 'node:path';
import ts from 'typescript';
import type { Manifest } from './helm.js';
import { projectDir } from './project-dir.js';

/**
 * A generated class whose constructor takes an object and whose `validate` throws what its OpenAPI schema says against
 * it.
 */
type Model = new (manifest: Manifest) => { validate: () => void };

/** Where the schema of a kind is; a kind that is not here fails the test. */
function modelOf({ apiVersion, kind }: Manifest): string {
  const family = apiVersion.startsWith('monitoring.coreos.com/')
    ? '@kubernetes-models/prometheus-operator'
    : 'kubernetes-models';
  return `${family}/${apiVersion}/${kind}`;
}

/** What the OpenAPI schemas say against each: types, required fields, allowed values. */
export async function schemaFaults(manifests: readonly Manifest[]): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const manifest of manifests) {
    const loaded = (await import(modelOf(manifest))) as Readonly<Record<string, Model>>;
    const KindModel = loaded[manifest.kind];
    if (KindModel === undefined) throw new Error(`no schema of ${manifest.kind}`);
    try {
      new KindModel(manifest).validate();
    } catch (error) {
      faults.push(`${manifest.kind} ${manifest.metadata.name}: ${error instanceof Error ? error.message : 'unknown'}`);
    }
  }
  return faults;
}

/** Fields that no schema has, in all of them at once: the API server would drop a misspelt one without a word. */
export function unknownFields(manifests: readonly Manifest[]): readonly string[] {
  const file = join(projectDir, '.build/manifests.ts');
  const kinds = new Map(
    manifests.map((manifest) => [modelOf(manifest), `${manifest.kind}${manifest.apiVersion.replace(/\W/g, '')}`]),
  );
  const imports = [...kinds].map(
    ([model, name]) => `import type { I${model.split('/').at(-1) ?? ''} as ${name} } from '${model}';`,
  );
  const objects = manifests.map(
    (manifest, index) =>
      `export const m${String(index)}: ${kinds.get(modelOf(manifest)) ?? ''} = ${JSON.stringify(manifest)};`,
  );
  const text = [...imports, ...objects].join('\n');
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
  };
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (name, version) =>
    name === file ? ts.createSourceFile(name, text, version) : read(name, version);
  const exists = host.fileExists.bind(host);
  host.fileExists = (name) => name === file || exists(name);
  const program = ts.createProgram([file], options, host);
  const diagnostics = [
    ...program.getSyntacticDiagnostics(),
    ...program.getSemanticDiagnostics(program.getSourceFile(file)),
  ];
  return diagnostics.map(
    ({ messageText, start = 0 }) =>
      `${ts.flattenDiagnosticMessageText(messageText, ' ')} at ${text.slice(start, start + 60)}`,
  );
}
