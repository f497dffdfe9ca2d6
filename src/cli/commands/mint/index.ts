import { InvalidArgumentError, Option, type Command } from 'commander';
import { normalizeApiDomain } from '../../../core-api/core-url.js';
import { durationArgument } from '../../arguments.js';
import { defineCommand, requireOptions } from '../../definition.js';
import type { Io } from '../../io.js';
import type { MintOptions } from './run.js';
import { jsonOption } from '../../options.js';

const defaultValidityMs = 5 * 60 * 1_000;

/** `sallyport mint --curl-config FILE`: mints a service token through the Core. */
export function createMintCommand(io: Io): Command {
  const command = defineCommand({
    name: 'mint',
    about:
      'Mint a service token through the Core: claims as a JSON object on standard input, the token on standard output.',
    examples: [
      [
        'a token for five minutes',
        'sallyport mint --curl-config core.curl \\\n    --issuer https://api.example.com < claims.json',
      ],
      [
        'one that passes once, with a line to keep',
        'sallyport mint --curl-config core.curl \\\n    --issuer https://api.example.com --single-use \\\n' +
          '    --issuance-log minted.jsonl < claims.json',
      ],
    ],
    notes: [
      'Claims: aud, sub, source, token_type, permissions; all of them and no other.',
      'The token is signed with a dynamic key, and is checked before it is printed.',
    ],
    exitCodes: {
      0: 'minted',
      1: 'the Core refused, or signed something else than was asked for',
      2: 'usage, claims, or a file that cannot be used as it is',
      3: 'the Core is out of reach, or the issuance log cannot be written',
    },
    page: 'docs/minting.md',
  })
    .option(
      '--curl-config <file>',
      'where the Core is and its API key, as `curl -K` reads it; a regular file of yours of mode 0600',
    )
    .addOption(new Option('--issuer <url>', 'the API domain, which becomes `iss`').argParser(issuerArgument))
    .addOption(
      new Option('--validity <duration>', 'how long the token lives, in whole seconds')
        .argParser(validityArgument)
        .default(defaultValidityMs, '5m'),
    )
    .option('--single-use', 'put a random `jti` into the token')
    .option(
      '--bound-to <file>',
      'bind the token to this certificate or key in PEM: it counts for who shows the one, or proves the other',
    )
    .option(
      '--issuance-log <file>',
      'append one line about the token to this file, of mode 0600; without the line no token is printed',
    )
    .option('--allow-http', 'let the API key travel in the clear to another machine')
    .option('--allow-public-core', 'call a Core with a public address')
    .addOption(jsonOption())
    .action(async (options: MintOptions) => {
      const { mint } = await import('./run.js');
      await mint(options, io);
    });
  return requireOptions(command, 'curlConfig', 'issuer');
}

function issuerArgument(value: string): string {
  const domain = normalizeApiDomain(value);
  if (domain.ok) return domain.value;
  throw new InvalidArgumentError(`Allowed: ${domain.error}.`);
}

const readValidity = durationArgument('1s', '2h');

function validityArgument(value: string): number {
  const ms = readValidity(value);
  if (ms % 1_000 === 0) return ms;
  throw new InvalidArgumentError('Allowed: whole seconds, such as 90s.');
}
