import { Option, type Command } from 'commander';
import { durationArgument, timeArgument } from '../../arguments.js';
import { configNote, takesConfig } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';
import type { RevokeOptions } from './run.js';

/** `sallyport revoke`: revokes credentials on every proxy that shares the store. */
export function createRevokeCommand(io: Io): Command {
  const command = defineCommand({
    name: 'revoke',
    about:
      'Revoke keys, subjects or tokens, on every proxy that shares the store (Redis), within a second and until a given end.',
    examples: [
      ['a key that leaked', 'sallyport revoke --key-id d-1763120000000 --for 3h --reason "in a log"'],
      ['a caller', 'sallyport revoke --subject checkout --for 7d --reason "incident 42"'],
      ['one token', 'sallyport revoke --token-stdin --for 3h --reason "in a ticket" < token'],
      [
        'what is revoked, and taking one back',
        'sallyport revoke --list\n  sallyport revoke --undo Qk3vX0c9TqW1rE8sYb2LzA --reason "a mistake"',
      ],
    ],
    notes: [
      configNote,
      'One of --key-id, --subject, --token-id, --token-stdin, --issued-before, --list and --undo; the first five need --for and --reason.',
      'A proxy that has read a revocation holds it to its end, whatever becomes of the store; only --undo ends it earlier.',
    ],
    exitCodes: {
      0: 'done',
      1: 'there is no such revocation or no more room',
      2: 'usage, or a store that no other process sees',
      3: 'the store is out of reach, or fewer replicas than `store.redis.replicas` confirmed what was written',
    },
    page: 'docs/compromise.md',
  });
  return takesConfig(command)
    .option('--key-id <id>', 'every token signed with this key: its `kid`')
    .option('--subject <subject>', 'every token and session of this caller or user')
    .option('--token-id <id>', 'the token with this `jti`')
    .option('--token-stdin', 'the token on standard input, which need not have a `jti`; only a digest of it is kept')
    .addOption(
      new Option(
        '--issued-before <time>',
        'every token issued before (RFC 3339), and those that do not say when they were',
      ).argParser(timeArgument),
    )
    .option('--issuer <name>', 'only those of this issuer, by its name in the config; `sessions` for sessions of users')
    .addOption(
      new Option(
        '--for <duration>',
        'how long it holds: 1s to 31d; what is to hold for ever belongs in the config',
      ).argParser(durationArgument('1s', '31d')),
    )
    .option('--reason <text>', 'why, for those who read the list')
    .option('--list', 'print what is revoked through the store, and what was undone')
    .option('--undo <id>', 'take a revocation back')
    .addOption(jsonOption())
    .action(async (file: string | undefined, options: RevokeOptions) => {
      const { revoke } = await import('./run.js');
      await revoke({ ...options, file }, io);
    });
}
