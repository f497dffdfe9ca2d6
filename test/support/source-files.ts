import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import ts from 'typescript';
import { projectDir } from './project-dir.js';

/** One import of a source file. */
export interface Import {
  /** As written. */
  readonly text: string;
  /** The file it names, from the project's folder, or `null` where it names a package. */
  readonly file: string | null;
  /** Whether nothing of it is left at run time. */
  readonly typeOnly: boolean;
  /** Whether it is loaded when the code gets there, and not before the file runs. */
  readonly isLazy: boolean;
  /** The names it takes at run time; empty for namespaces and `import()`. */
  readonly names: readonly string[];
}

/** A TypeScript file, parsed. */
export interface SourceFile {
  /** From the project's folder, `src/decision/token/service-token.ts`. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
  /** Every node, depth first. */
  readonly nodes: readonly ts.Node[];
}

const notOurs = new Set(['node_modules', '.git', '.build', '.tap', 'dist', 'built', 'bundle', 'coverage']);

/** Every file of the project that is kept, as paths from its folder. */
export function projectFiles(folder = ''): string[] {
  return readdirSync(join(projectDir, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return notOurs.has(entry.name) || entry.name.startsWith('.mutation') ? [] : projectFiles(path);
    }
    return [path];
  });
}

export function readProjectFile(path: string): string {
  return readFileSync(join(projectDir, path), 'utf8');
}

export function parseSource(path: string): SourceFile {
  const text = readProjectFile(path);
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true));
  return { path, text, nodes, imports: nodes.flatMap((node) => readImport(path, node)) };
}

function readImport(path: string, node: ts.Node): Import[] {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    const { named, typeOnly } = clauseOf(node.importClause);
    return [importOf(path, node.moduleSpecifier.text, { typeOnly, isLazy: false, names: named })];
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal)) {
    return [importOf(path, node.argument.literal.text, { typeOnly: true, isLazy: false, names: [] })];
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    return argument !== undefined && ts.isStringLiteral(argument)
      ? [importOf(path, argument.text, { typeOnly: false, isLazy: true, names: [] })]
      : [];
  }
  return [];
}

function clauseOf(clause: ts.ImportClause | undefined): { named: string[]; typeOnly: boolean } {
  if (clause === undefined) return { named: [], typeOnly: false };
  const bindings = clause.namedBindings;
  const elements = bindings !== undefined && ts.isNamedImports(bindings) ? [...bindings.elements] : [];
  const named = elements
    .filter((element) => !element.isTypeOnly)
    .map((element) => (element.propertyName ?? element.name).text);
  const takesValues =
    clause.name !== undefined || (bindings !== undefined && ts.isNamespaceImport(bindings)) || named.length > 0;
  return { named, typeOnly: clause.phaseModifier === ts.SyntaxKind.TypeKeyword || !takesValues };
}

function importOf(path: string, text: string, kind: Pick<Import, 'typeOnly' | 'isLazy' | 'names'>): Import {
  const file = text.startsWith('.') ? normalize(relative('', join(dirname(path), text.replace(/\.js$/, '.ts')))) : null;
  return { text, file, ...kind };
}
