import { InvalidArgumentError, type Command } from 'commander';
import { defineCommand, requireOptions } from '../../definition.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';
import type { ProveOptions } from './run.js';

/** `sallyport prove --key FILE METHOD URL`: makes the headers of one request with a token that is bound to a key. */
export function createProveCommand(io: Io): Command {
  const command = defineCommand({
    name: 'prove',
    about:
      'Make the headers of one request with a token that is bound to a key (DPoP): the token on standard input, Authorization and DPoP on standard output, as curl -H @- reads them.',
    examples: [
      [
        'a request with its proof',
        'sallyport prove --key key.pem GET https://orders.example.com/orders < token |\n    curl -H @- https://orders.example.com/orders',
      ],
      [
        'with the nonce that a 401 gave in DPoP-Nonce',
        'sallyport prove --key key.pem --nonce "$NONCE" \\\n    GET https://orders.example.com/orders < token',
      ],
    ],
    notes: [
      'A proof is for one method, one address without its query, and one token; it counts once, and not for long.',
      'The address is the one that listen.dpop.origins names. Nothing is sent, and nothing is asked.',
    ],
    exitCodes: { 0: 'made', 2: 'usage, a token that is none, or a key that cannot be used' },
    page: 'docs/bound-tokens.md',
  })
    .argument('<method>', 'as it will be sent: GET', methodArgument)
    .argument('<url>', 'where it will be sent', urlArgument)
    .option('--key <file>', 'the private key in PEM: P-256, Ed25519 or RSA; a file that only you may read')
    .option('--nonce <text>', 'the last DPoP-Nonce of that service', nonceArgument)
    .addOption(jsonOption())
    .action(async (method: string, url: URL, options: ProveOptions) => {
      const { prove } = await import('./run.js');
      await prove({ method, url }, options, io);
    });
  return requireOptions(command, 'key');
}

/** RFC 9110 §5.6.2. */
function methodArgument(value: string): string {
  if (/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/.test(value)) return value;
  throw new InvalidArgumentError('Allowed: a method, such as GET.');
}

function urlArgument(value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === '') return url;
  throw new InvalidArgumentError('Allowed: an address such as https://orders.example.com/orders, without a user.');
}

/** RFC 9449 §8.1. */
function nonceArgument(value: string): string {
  if (/^[\x21\x23-\x5b\x5d-\x7e]{1,1024}$/.test(value)) return value;
  throw new InvalidArgumentError('Allowed: a nonce of visible ASCII without quotes and backslashes.');
}
