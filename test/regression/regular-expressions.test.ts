/**
 * CWE-1333: no regular expression of ours takes time that grows faster than its input, where somebody else writes that
 * input.
 */
import { isSafe } from 'redos-detector';
import t from 'tap';
import ts from 'typescript';
import '../support/campaign.js';
import { parseSource, projectFiles } from '../support/source-files.js';

t.setTimeout(300_000);

interface Exception {
  readonly file: string;
  /** How the expression begins. */
  readonly begins: string;
  readonly reason: string;
}

/** Nobody else can make it long. */
const operators = 'the operator writes what it reads';

/**
 * What the detector cannot clear, each with the reason why it is no harm. Those that strangers feed are held to time
 * below.
 */
const exceptions: readonly Exception[] = [
  { file: 'src/adapters/assertion-signer.ts', begins: '/-----BEGIN ((?:EC', reason: operators },
  {
    file: 'src/core-api/redact-response.ts',
    begins: '/<([^<>]*)>/',
    reason: 'a match begins at `<` and ends before the next',
  },
  {
    file: 'src/core-api/redact-response.ts',
    begins: '/\\$(?:2[a-z]?',
    reason: 'nothing follows what repeats, so that a match is never given back; it reads 16 KiB at most',
  },
  {
    file: 'src/adapters/log/logger.ts',
    begins: '/(?<![A-Za-z0-9_-])[A-Za',
    reason: 'begins at the first of its characters only, which the detector does not see',
  },
  {
    file: 'src/adapters/log/logger.ts',
    begins: '/\\/\\/[^/\\s@]+@/',
    reason: 'a match begins at `//` and ends before the next `/`',
  },
  {
    file: 'src/adapters/redis/topology/discovery.ts',
    begins: '/^\\S+ \\d+ ',
    reason: 'a line of Redis, whose parts are parted by spaces',
  },
  {
    file: 'src/adapters/redis/scripts/errors.ts',
    begins: '/,? with args',
    reason: 'words of ioredis; from the first match on all is taken',
  },
  { file: 'src/app/reload/reload.ts', begins: '/:\\d{1,7}:', reason: operators },
  {
    file: 'src/cli/commands/doctor/upstream-responses.ts',
    begins: '/HTTP\\/1',
    reason: 'no more than 256 characters are looked at for each `HTTP/1.1 200`',
  },
  { file: 'src/cli/commands/revoke/run.ts', begins: '/ey[\\w-]', reason: operators },
  { file: 'src/config/sections/telemetry.ts', begins: '/\\/+$/', reason: operators },
  { file: 'src/decision/telemetry/otel-variables.ts', begins: '/\\/+$/', reason: operators },
  { file: 'src/decision/telemetry/otel-variables.ts', begins: '/^\\s*([^=', reason: operators },
  {
    file: 'src/fastify/application-routes.ts',
    begins: '/^((?:│',
    reason: 'the application’s own routes, as Fastify prints them',
  },
  { file: 'src/fastify/route-pattern.ts', begins: '/\\/:[^/()]*', reason: 'the application’s own routes' },
  { file: 'src/policy-test/learn/proposal.ts', begins: '/^[^a-z0-9]+', reason: 'it reads 100 characters at most' },
  { file: 'src/policy-test/learn/settle-proposal.ts', begins: '/\\(line ', reason: 'a message of ours' },
  { file: 'src/policy-test/learn/write-config.ts', begins: '/\\n', reason: operators },
  { file: 'src/policy-test/learn/write-config.ts', begins: '/\\$\\{file', reason: operators },
  { file: 'src/config/sections/sessions.ts', begins: '/\\/+$/', reason: operators },
  {
    file: 'src/config/load/redact.ts',
    begins: '/:\\/\\/([^/',
    reason: 'a match begins at `://` and ends before the next `/`',
  },
  { file: 'src/config/load/redact.ts', begins: '/\\s(?:pass', reason: operators },
  { file: 'src/config/load/redact.ts', begins: '/\\b(?:bearer', reason: operators },
  { file: 'src/config/load/redact.ts', begins: '/-----BEGIN [A-Z ]+', reason: operators },
  { file: 'src/config/load/redact.ts', begins: '/([\\w-]+)', reason: operators },
  { file: 'src/playground/editor/completion/place.ts', begins: '/^(\"(?:', reason: operators },
  { file: 'src/playground/node/buffer.ts', begins: '/=+$/', reason: operators },
  { file: 'src/core-api/curl/curl-config.ts', begins: '/^[\\t ]+|', reason: operators },
  { file: 'src/config/sections/routes/route-path.ts', begins: '/^[<[]', reason: operators },
  { file: 'src/config/checks/likely-mistakes.ts', begins: '/\\$\\(', reason: operators },
  { file: 'src/config/sections/store.ts', begins: '/:[0-9]+$/', reason: operators },
  { file: 'src/config/schema/scalars.ts', begins: '/(^|\\.)(0[xX]', reason: operators },
  { file: 'src/lib/pem.ts', begins: '/-----BEGIN CERT', reason: operators },
  {
    file: 'src/decision/http/http-freshness.ts',
    begins: '/(?:^|,)[ \\t]*',
    reason: 'a match begins at a comma; a header section of an issuer has 16 KiB at most',
  },
  {
    file: 'src/decision/revocation/named-keys.ts',
    begins: '/^(?:[\\w-]+[ ',
    reason: 'begins at the start alone; its parts are parted by blanks and a dot, which the one before has not',
  },
  {
    file: 'src/core-emulator/api/contacts.ts',
    begins: '/^[^\\s\\p{C}@]+@',
    reason: 'its parts are parted by the one `@` and by dots, which none of them has',
  },
  { file: 'src/policy-test/simulate/decide.ts', begins: '/^[\\t ]+|', reason: operators },
  { file: 'src/user-import/row/firebase.ts', begins: '/"?([a-z0-9_]+)"?', reason: operators },
  { file: 'src/user-import/row/firebase.ts', begins: '/=+$/', reason: operators },
  { file: 'src/user-import/row/password-hash.ts', begins: '/=+$/', reason: operators },
  { file: 'src/user-import/rejected-rows.ts', begins: '/\\$[\\w=,.-]*', reason: operators },
];

/** Made at run time, out of constants of ours. */
const made = [
  'new RegExp(`^${name}=([1-9][0-9]?)$`)',
  "new RegExp(`^([0-9]{1,12})(${Object.keys(units).join('|')})$`)",
  "new RegExp(unsafe, 'g')",
];

const sources = projectFiles('src')
  .filter((file) => file.endsWith('.ts'))
  .map(parseSource);

t.test('no regular expression backtracks without end, but for those that are listed with their reason', (t) => {
  const literals = sources.flatMap(({ path, nodes }) =>
    nodes.filter(ts.isRegularExpressionLiteral).map(({ text }) => ({ path, text })),
  );
  const unsafe = literals.filter(({ text }) => !isSafe(expressionOf(text), { maxScore: 12, timeout: Infinity }).safe);
  const isListed = ({ path, text }: { path: string; text: string }): boolean =>
    exceptions.some(({ file, begins }) => file === path && text.startsWith(begins));
  t.same(
    unsafe.filter((one) => !isListed(one)),
    [],
  );
  t.same(
    exceptions.filter(({ file, begins }) => !unsafe.some(({ path, text }) => path === file && text.startsWith(begins))),
    [],
    'none is listed for nothing',
  );
  t.end();
});

t.test('none is made out of what comes from outside', (t) => {
  const calls = sources.flatMap(({ nodes }) =>
    nodes.filter((node) => ts.isNewExpression(node) || ts.isCallExpression(node)),
  );
  const found = calls.filter(({ expression }) => expression.getText() === 'RegExp').map((node) => node.getText());
  t.same(found.sort(), [...made].sort());
  t.end();
});

t.test('those that strangers feed take a mebibyte of the worst in no time', (t) => {
  const rows = [
    { file: 'src/adapters/log/logger.ts', begins: '/(?<!', worst: ['eyJ', 'a', '-.', 'a.', '.'] },
    { file: 'src/adapters/log/logger.ts', begins: '/\\/\\/', worst: ['/', '//a', '/a'] },
    { file: 'src/core-api/redact-response.ts', begins: '/<(', worst: ['<', '<a', '<>'] },
    { file: 'src/decision/revocation/named-keys.ts', begins: '/^(?:', worst: ['a', 'a ', ' ', 'a.', '.', 'a.=!'] },
  ];
  for (const { file, begins, worst } of rows) {
    const literal = literalsOf(file).find((text) => text.startsWith(begins)) ?? '';
    for (const piece of worst) {
      const startedMs = performance.now();
      piece.repeat(2 ** 20 / piece.length).replace(expressionOf(literal), '');
      t.ok(performance.now() - startedMs < 10_000, `${literal} with ${piece}`);
    }
  }
  const [directives = ''] = literalsOf('src/decision/http/http-freshness.ts');
  for (const piece of [',a', ',a="', '\\a', ', ', 'a']) {
    const startedMs = performance.now();
    piece.repeat(2 ** 14 / piece.length).replace(expressionOf(directives), '');
    t.ok(performance.now() - startedMs < 10_000, `16 KiB of ${piece}`);
  }
  t.end();
});

function literalsOf(file: string): string[] {
  return (
    sources
      .find(({ path }) => path === file)
      ?.nodes.filter(ts.isRegularExpressionLiteral)
      .map(({ text }) => text) ?? []
  );
}

/** The expression that a literal of the source stands for. */
function expressionOf(literal: string): RegExp {
  const end = literal.lastIndexOf('/');
  return new RegExp(literal.slice(1, end), literal.slice(end + 1));
}
