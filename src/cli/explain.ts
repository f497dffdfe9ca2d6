import { Command, InvalidArgumentError, Option } from 'commander';
import { loadConfig } from '../app/config-source.js';
import { openKeys } from '../app/opened-keys.js';
import { decideOnly } from '../app/policy-in-force.js';
import { startFailure, type StartFailure } from '../app/start-failure.js';
import type { CompiledConfig } from '../config/compiled.js';
import { accept, refuse, type Result } from '../decision/result.js';
import type { JsonObject } from '../decision/strict-json.js';
import { assumeToken, noCredential, type ShownCredential } from '../policy-test/assumed-credential.js';
import { createAssumedKeys } from '../policy-test/assumed-keys.js';
import { assumedSessions } from '../policy-test/assumed-sessions.js';
import { explanationData } from '../policy-test/explained-data.js';
import { explanationLines } from '../policy-test/explained-text.js';
import { headOf, type PolicyRequest } from '../policy-test/request.js';
import { rule } from '../policy-test/ruling.js';
import { timeArgument } from './arguments.js';
import { readClaims, readToken } from './explain-input.js';
import type { Io } from './io.js';
import { configOption, fail, jsonOption, sourceOf } from './options.js';

interface Options {
  readonly config: string;
  readonly method: string;
  readonly path: string;
  readonly header: readonly (readonly [string, string])[];
  readonly tokenStdin?: true;
  readonly claims?: string;
  readonly subject?: string;
  readonly permissions?: string;
  readonly tokenId?: string;
  readonly issuer?: string;
  readonly at?: number;
  readonly json?: true;
}

/** `sallyport explain`: each step of one decision, in words, by the functions that serve. */
export function createExplainCommand(io: Io): Command {
  return new Command('explain')
    .description('Explain one decision, step by step, by the code that serves requests. Nothing is sent to the receiving service or to the store.')
    .addOption(configOption())
    .requiredOption('--method <method>', 'method of the request')
    .requiredOption('--path <path>', 'path of the request, with its query where it has one')
    .addOption(new Option('--header <field>', '`Name: value`, once for each field').argParser(fieldArgument).default([], 'none'))
    .addOption(new Option('--token-stdin', 'a token on standard input, verified with the issuer’s keys')
      .conflicts(['claims', 'subject', 'permissions', 'tokenId', 'issuer']))
    .addOption(new Option('--claims <file>', 'JSON object of claims; they are assumed, and those that are missing are filled in')
      .conflicts(['subject', 'permissions', 'tokenId']))
    .option('--subject <subject>', 'an assumed token of this caller')
    .option('--permissions <list>', 'permissions of the assumed token, with spaces between')
    .option('--token-id <id>', '`jti` of the assumed token')
    .option('--issuer <name>', 'issuer of the assumed token, by its name in the config')
    .addOption(new Option('--at <time>', 'decide as at this time (RFC 3339) instead of now').argParser(timeArgument))
    .addOption(jsonOption())
    .addHelpText('after', '\nWithout a token, claims or subject the request has no credential. Tokens never come from arguments.\n'
      + 'What `sallyport revoke` withdrew is not asked: see `sallyport revoke --list`.\n'
      + 'Exit code: 0 let through, 1 denied or a bad config, 2 usage, or a file that cannot be read, 3 the issuer’s keys are out of reach.')
    .action((options: Options) => explain(options, io));
}

/** Adds a field to those before. */
function fieldArgument(value: string, before: readonly (readonly [string, string])[]): readonly (readonly [string, string])[] {
  const colon = value.indexOf(':');
  const name = value.slice(0, Math.max(colon, 0)).trim();
  if (name === '') throw new InvalidArgumentError('Allowed: a name, a colon and a value.');
  return [...before, [name, value.slice(colon + 1).trim()]];
}

async function explain(options: Options, io: Io): Promise<void> {
  const loaded = await loadConfig(sourceOf(options.config, io), io.env);
  const outcome = loaded.ok ? await explainWith(loaded.value, options, io) : loaded;
  if (!outcome.ok) fail(outcome.error, io);
}

async function explainWith(config: CompiledConfig, options: Options, io: Io): Promise<Result<null, StartFailure>> {
  // Not while the arguments are read: what is wrong with one is said with its value.
  if (options.header.some(([name]) => /^(proxy-)?authorization$/i.test(name))) {
    return refuse(startFailure('unreadable', '--header: credentials are not taken from arguments; allowed: a token on standard input (--token-stdin)'));
  }
  const request: PolicyRequest = { method: options.method, path: options.path, headers: options.header, body: null };
  const nowMs = options.at ?? Date.now();
  if (options.tokenStdin !== true) {
    const given = await givenClaims(config, options, io);
    if (!given.ok) return given;
    const keys = createAssumedKeys();
    const inForce = decideOnly(config, () => keys.source, assumedSessions(config, keys));
    const credential = given.value === null ? noCredential : assumeToken(given.value, request, inForce, keys, nowMs);
    await print({ request, inForce, nowMs, credential }, options, io);
    return accept(null);
  }
  const token = await readToken(io);
  if (!token.ok) return token;
  const opened = await openKeys(config);
  if (!opened.ok) return opened;
  const keys = opened.value;
  try {
    const notes = ['a token from standard input, verified with the keys that its issuer publishes'];
    const credential = { fields: ['Authorization', `Bearer ${token.value}`], notes };
    await print({ request, inForce: decideOnly(config, keys.of, keys.sessions), nowMs, credential }, options, io);
  } finally {
    await keys.close();
  }
  return accept(null);
}

/** The claims that were given, `null` where none were. */
async function givenClaims(config: CompiledConfig, options: Options, io: Io): Promise<Result<JsonObject | null, StartFailure>> {
  const { subject, permissions, tokenId, issuer: name, claims: file } = options;
  const issuer = config.issuers.find(({ rules }) => rules.name === name)?.rules;
  if (name !== undefined && issuer === undefined) {
    const names = config.issuers.map(({ rules }) => rules.name).join(', ');
    return refuse(startFailure('unreadable', `--issuer: the config has no issuer ${JSON.stringify(name)}; allowed: ${names}`));
  }
  const named: JsonObject = issuer === undefined ? {} : { iss: issuer.issuer, aud: issuer.audience };
  if (file !== undefined) {
    const read = await readClaims(file, io);
    return read.ok ? accept({ ...named, ...read.value }) : read;
  }
  if (subject === undefined) {
    const lost = [permissions, tokenId, name].some((value) => value !== undefined);
    return lost ? refuse(startFailure('unreadable', '--permissions, --token-id and --issuer describe a token: they need --subject or --claims')) : accept(null);
  }
  return accept({
    ...named,
    sub: subject,
    permissions: (permissions ?? '').split(/[ ,]+/).filter((permission) => permission !== ''),
    ...(tokenId === undefined ? {} : { jti: tokenId }),
  });
}

interface Question {
  readonly request: PolicyRequest;
  readonly inForce: ReturnType<typeof decideOnly>;
  readonly nowMs: number;
  readonly credential: ShownCredential;
}

async function print({ request, inForce, nowMs, credential }: Question, { json }: Options, io: Io): Promise<void> {
  const head = headOf(request, credential.fields);
  const ruling = await rule(head, 0, inForce, nowMs);
  const explained = { head, inForce, nowMs, ruling, credentialNotes: credential.notes };
  if (json === true) io.stdout(`${JSON.stringify(explanationData(explained))}\n`);
  else io.stdout(`${explanationLines(explained).join('\n')}\n`);
  io.exit(ruling.decision !== 'denied' ? 0 : ruling.reason === 'keys_unavailable' || ruling.reason === 'core_unavailable' ? 3 : 1);
}
