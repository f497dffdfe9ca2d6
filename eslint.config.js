import { defineConfig } from 'eslint/config';
import typescript from 'typescript-eslint';

const never = [
  { selector: 'ExportDefaultDeclaration', message: 'Name what is exported.' },
  {
    selector: 'ExportAllDeclaration, ExportNamedDeclaration[source]',
    message: 'Import from where it is defined: no re-exports.',
  },
  { selector: 'TSEnumDeclaration', message: 'Use a union of string literals.' },
  { selector: 'TSNonNullExpression', message: 'Check the value.' },
];

/** What the compiler does not say and a reviewer would. */
const plain = {
  // Prettier breaks code; this holds comments, which it leaves alone.
  'max-len': [
    'error',
    { code: 120, ignoreUrls: true, ignoreRegExpLiterals: true, ignoreStrings: true, ignoreTemplateLiterals: true },
  ],
  'max-lines': ['error', 500],
  'no-restricted-syntax': ['error', ...never],
  'no-console': 'error',
  eqeqeq: 'error',
  curly: ['error', 'multi-line'],
  'no-var': 'error',
  'prefer-const': 'error',
  'object-shorthand': 'error',
  'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx'], location: 'anywhere' }],
  'no-constant-binary-expression': 'error',
  'no-constant-condition': ['error', { checkLoops: 'allExceptWhileTrue' }],
  'no-duplicate-imports': ['error', { allowSeparateTypeImports: true }],
  'no-else-return': 'error',
  'no-fallthrough': 'error',
  'no-self-compare': 'error',
  'no-template-curly-in-string': 'off',
  'no-unreachable-loop': 'error',
  'no-useless-concat': 'error',
  'no-useless-return': 'error',
  quotes: ['error', 'single', { avoidEscape: true }],
  semi: ['error', 'always'],
};

export default defineConfig(
  { ignores: ['dist/', 'bundle/', '.build/', 'src/built/', '.mutation*/', '.tap/', 'coverage/', 'node_modules/'] },
  { files: ['**/*.{js,mjs}'], languageOptions: { globals: {} }, rules: plain },
  { files: ['eslint.config.js'], rules: { 'no-restricted-syntax': 'off' } },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [typescript.configs.strictTypeChecked],
    // One program for everything is half the time of one per tsconfig.
    languageOptions: { parserOptions: { project: './test/tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      ...plain,
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/prefer-readonly': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // The compiler reports them, and an underscore is how it is told that one is meant.
      '@typescript-eslint/no-unused-vars': 'off',
    },
  },
  // They run in a browser, and are checked with its types.
  {
    files: ['src/{console,playground}/**/*.{ts,tsx}'],
    languageOptions: { parserOptions: { project: './src/playground/tsconfig.json' } },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      // tap collects its subtests by itself; every other promise has to be awaited here as well.
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafePromises: [{ from: 'package', package: '@tapjs/core', name: 'PromiseWithSubtest' }] },
      ],
      // A test or a stand-in may be asynchronous because its type is.
      '@typescript-eslint/require-await': 'off',
    },
  },
  // These speak to a person: the check and the measurements print what they find.
  {
    files: [
      'test/run.mjs',
      'test/check/**/*.mjs',
      'test/bench/*.ts',
      'test/conformance/*.mjs',
      'docs/examples/**/*.mjs',
    ],
    rules: { 'no-console': 'off' },
  },
);
