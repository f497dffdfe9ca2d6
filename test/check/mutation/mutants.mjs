/** Small changes to a program, each of which some test has to notice. */
import ts from 'typescript';

const { SyntaxKind: kinds } = ts;

/** What stands in the place of an operator. */
const operators = new Map([
  [kinds.EqualsEqualsEqualsToken, ['!==']],
  [kinds.ExclamationEqualsEqualsToken, ['===']],
  [kinds.LessThanToken, ['<=', '>=']],
  [kinds.LessThanEqualsToken, ['<', '>']],
  [kinds.GreaterThanToken, ['>=', '<=']],
  [kinds.GreaterThanEqualsToken, ['>', '<']],
  [kinds.AmpersandAmpersandToken, ['||']],
  [kinds.BarBarToken, ['&&']],
  [kinds.PlusToken, ['-']],
  [kinds.MinusToken, ['+']],
  [kinds.AsteriskToken, ['/']],
  [kinds.SlashToken, ['*']],
  [kinds.PercentToken, ['*']],
]);

/** What stands in the place of a method. */
const methods = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['startsWith', 'endsWith'],
  ['endsWith', 'startsWith'],
  ['min', 'max'],
  ['max', 'min'],
]);

/**
 * Every mutant of a TypeScript file: what is changed, at which place, and the file's new text, as it is and compiled.
 * Types are left alone, and so are texts: most of them are read by people.
 */
export function mutantsOf(path, text) {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
  const mutants = [];
  const add = (node, kind, replacement) => {
    const [start, end] = [node.getStart(source), node.getEnd()];
    const { line } = source.getLineAndCharacterOfPosition(start);
    const code = text.slice(start, end);
    const changed = text.slice(0, start) + replacement + text.slice(end);
    const at = text.split('\n', line + 1)[line].trim();
    mutants.push({
      path,
      line: line + 1,
      at,
      kind,
      code: oneLine(code),
      replacement: oneLine(replacement),
      text: changed,
    });
  };
  const visit = (node) => {
    if (
      ts.isTypeNode(node) ||
      ts.isInterfaceDeclaration(node) ||
      ts.isTypeAliasDeclaration(node) ||
      ts.isImportDeclaration(node)
    ) {
      return;
    }
    mutate(node, add, source);
    ts.forEachChild(node, visit);
  };
  visit(source);
  const unchanged = compile(text);
  return mutants
    .map((mutant) => ({ ...mutant, compiled: compile(mutant.text) }))
    .filter(({ compiled }) => compiled !== unchanged)
    .map((mutant) => ({ ...mutant, offset: firstDifference(unchanged, mutant.compiled) }));
}

/** Where in the compiled file something else stands. */
function firstDifference(text, other) {
  let at = 0;
  while (text[at] === other[at]) at += 1;
  return at;
}

/** As JavaScript, which is what runs. */
export function compile(text) {
  return ts.transpileModule(text, {
    compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
  }).outputText;
}

function mutate(node, add, source) {
  if (ts.isBinaryExpression(node)) {
    for (const other of operators.get(node.operatorToken.kind) ?? []) add(node.operatorToken, 'operator', other);
    if (node.operatorToken.kind === kinds.QuestionQuestionToken) add(node, 'no fallback', node.left.getText(source));
  } else if (node.kind === kinds.TrueKeyword || node.kind === kinds.FalseKeyword) {
    add(node, 'boolean', node.kind === kinds.TrueKeyword ? 'false' : 'true');
  } else if (ts.isPrefixUnaryExpression(node) && node.operator === kinds.ExclamationToken) {
    add(node, 'no negation', node.operand.getText(source));
  } else if (ts.isNumericLiteral(node)) {
    const value = Number(node.text.replaceAll('_', ''));
    add(node, 'number', String(value + 1));
    if (value > 0) add(node, 'number', String(value - 1));
  } else if (ts.isRegularExpressionLiteral(node)) {
    for (const other of weakened(node.text)) add(node, 'pattern', other);
  } else if (ts.isConditionalExpression(node)) {
    add(node.condition, 'condition', `!(${node.condition.getText(source)})`);
  } else if (ts.isIfStatement(node)) {
    add(node.expression, 'condition', `!(${node.expression.getText(source)})`);
    // What guards by leaving early is taken out whole.
    if (node.elseStatement === undefined) add(node, 'guard', ';');
  } else if (ts.isExpressionStatement(node)) {
    add(node, 'statement', ';');
  } else if (
    ts.isArrayLiteralExpression(node) &&
    node.elements.length > 1 &&
    node.elements.every((element) => ts.isStringLiteral(element))
  ) {
    for (const left of node.elements) {
      const others = node.elements.filter((one) => one !== left).map((one) => one.getText(source));
      add(node, `without ${left.text}`, `[${others.join(', ')}]`);
    }
  } else if (ts.isPropertyAccessExpression(node) && methods.has(node.name.text)) {
    add(node.name, 'method', methods.get(node.name.text));
  }
}

/** An expression that takes more than this one. */
function weakened(literal) {
  const found = [];
  if (literal.startsWith('/^')) found.push(`/${literal.slice(2)}`);
  const end = literal.lastIndexOf('/');
  if (literal[end - 1] === '$' && literal[end - 2] !== '\\') found.push(literal.slice(0, end - 1) + literal.slice(end));
  for (const [from, to] of [
    [']+', ']*'],
    [']*', ']+'],
  ]) {
    if (literal.includes(from)) found.push(literal.replace(from, to));
  }
  return found;
}

function oneLine(text) {
  return text.replace(/\s+/g, ' ').slice(0, 120);
}
