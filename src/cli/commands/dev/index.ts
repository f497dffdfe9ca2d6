import { Option, type Command } from 'commander';
import { originArgument, portArgument } from '../../arguments.js';
import { takesConfig } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import { devProfiles } from './profiles.js';
import type { DevOptions } from './run.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';

/** `sallyport dev`: everything on loopback, until a signal. */
export function createDevCommand(io: Io): Command {
  const command = defineCommand({
    name: 'dev',
    about:
      'Run everything on loopback: Core emulator, or an issuer of another profile, demo upstream and proxy. Prints the config and commands to try.',
    examples: [
      ['with a demo service', 'sallyport dev'],
      ['with tokens of OAuth, of Kubernetes or of SPIFFE', 'sallyport dev --profile oauth'],
      ['in front of a service of yours, on a free port', 'sallyport dev --upstream http://127.0.0.1:3000 --port 0'],
      ['with tokens that are bound to a key or a certificate, over TLS', 'sallyport dev --bound'],
      ['with the calling side too, for callers without a token', 'sallyport dev --egress'],
      ['with a demo service of gRPC', 'sallyport dev --grpc'],
      ['with the routes of your config', 'sallyport dev --config sallyport.yaml'],
    ],
    notes: [
      'Of a config it takes routes and identity headers; everything else is replaced. Without one it has routes of its own.',
      'With another profile than core an issuer of its own listens on loopback: metadata and keys, for spiffe a bundle, and for oauth POST /token with a demo client.',
      'With --egress a second Sallyport calls the first one: egress alone is in its config, with a token source of the emulator or issuer, and it makes keys where every write of the routes reserves.',
      'With --bound the proxy has TLS, and a client has a key and a certificate that tokens are bound to, all of them new. Its commands make their proofs with sallyport prove.',
      'The tokens of the commands are in files below the folder for temporary files, which only you can read and which go when it ends.',
    ],
    exitCodes: {
      0: 'ended by a signal',
      1: 'the config has an error',
      2: 'usage, or the config cannot be read',
      3: 'the port is in use',
    },
    page: 'README.md',
  });
  return takesConfig(command, 'a config to take routes and identity headers from')
    .addOption(
      new Option('--profile <profile>', 'whose tokens: issuers.NAME.profile; a config of yours is run with core alone')
        .choices(devProfiles)
        .default('core'),
    )
    .option('--upstream <url>', 'an upstream of yours in the place of the demo one', originArgument)
    .option('--grpc', 'HTTP/2 on both sides and a demo service of gRPC; not with --upstream or a config')
    .option('--bound', 'TLS, and tokens that are bound to a key or a certificate; not with --grpc and --egress')
    .option('--port <number>', 'port of the proxy; 0 takes a free one', portArgument, 8080)
    .option('--egress', 'the calling side too, in front of callers that have no token and no key; not with --grpc')
    .option('--egress-port <number>', 'port of the calling side; 0 takes a free one', portArgument, 8181)
    .addOption(jsonOption())
    .action(async (file: string | undefined, options: DevOptions) => {
      const { dev } = await import('./run.js');
      await dev({ ...options, file }, io);
    });
}
