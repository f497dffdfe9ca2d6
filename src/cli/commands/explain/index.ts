import { InvalidArgumentError, Option, type Command } from 'commander';
import { timeArgument } from '../../arguments.js';
import { configNote, takesConfig } from '../../config/argument.js';
import { defineCommand, requireOptions } from '../../definition.js';
import type { ExplainOptions } from './run.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';

/** `sallyport explain`: each step of one decision, in words, by the functions that serve. */
export function createExplainCommand(io: Io): Command {
  const command = takesConfig(
    defineCommand({
      name: 'explain',
      about:
        'Explain one decision, step by step, by the code that serves requests. Nothing is sent to the upstream or to the store.',
      examples: [
        [
          'a request with the token of a real caller',
          'sallyport explain --method GET --path /orders --token-stdin < token',
        ],
        [
          'a caller that is assumed',
          'sallyport explain --method GET --path /orders \\\n    --subject checkout --permissions "orders:read"',
        ],
        [
          'claims from a file, at another time',
          'sallyport explain --method GET --path /orders \\\n    --claims claims.json --at 2026-01-31T12:00:00Z',
        ],
      ],
      notes: [
        configNote,
        'Without a token, claims or subject the request has no credential. Tokens never come from arguments.',
        'What "sallyport revoke" wrote to the store is not asked: see "sallyport revoke --list".',
      ],
      exitCodes: {
        0: 'let through',
        1: 'denied, or the config is wrong',
        2: 'usage, or a file cannot be read',
        3: "the issuer's keys are out of reach",
      },
      page: 'docs/policy-tests.md#explain',
    }),
  )
    .option('--method <method>', 'method of the request')
    .option('--path <path>', 'path of the request, with its query where it has one')
    .addOption(
      new Option('--header <header>', '`Name: value`, once for each header')
        .argParser(headerArgument)
        .default([], 'none'),
    )
    .addOption(
      new Option('--token-stdin', "a token on standard input, verified with the issuer's keys").conflicts([
        'claims',
        'subject',
        'permissions',
        'tokenId',
        'issuer',
      ]),
    )
    .addOption(
      new Option(
        '--claims <file>',
        'JSON object of claims; they are assumed, and those that are missing are filled in',
      ).conflicts(['subject', 'permissions', 'tokenId']),
    )
    .option('--subject <subject>', 'an assumed token of this caller')
    .option('--permissions <list>', 'permissions of the assumed token, with spaces between')
    .option('--token-id <id>', '`jti` of the assumed token')
    .option('--issuer <name>', 'issuer of the assumed token, by its name in the config')
    .option('--client-certificate <file>', 'certificate in PEM that the caller shows; it is taken for verified')
    .addOption(
      new Option('--egress', 'explain what the calling side would do with it').conflicts([
        'tokenStdin',
        'claims',
        'subject',
        'permissions',
        'tokenId',
        'issuer',
        'clientCertificate',
        'at',
      ]),
    )
    .addOption(new Option('--at <time>', 'decide as at this time (RFC 3339) instead of now').argParser(timeArgument))
    .addOption(jsonOption())
    .action(async (file: string | undefined, options: ExplainOptions) => {
      const { explain } = await import('./run.js');
      await explain({ ...options, file }, io);
    });
  return requireOptions(command, 'method', 'path');
}

/** Adds a header to those before. */
function headerArgument(
  value: string,
  before: readonly (readonly [string, string])[],
): readonly (readonly [string, string])[] {
  const colon = value.indexOf(':');
  const name = value.slice(0, Math.max(colon, 0)).trim();
  if (name === '') throw new InvalidArgumentError('Allowed: a name, a colon and a value.');
  return [...before, [name, value.slice(colon + 1).trim()]];
}
