import { randomBytes } from 'node:crypto';
import { Command, Option } from 'commander';
import { loadConfig } from '../app/config-source.js';
import { startFailure, type StartFailure } from '../app/start-failure.js';
import type { CompiledConfig } from '../config/compiled.js';
import { accept, type Result } from '../decision/result.js';
import { maxReasonLength, type NewRevocation } from '../decision/revocation-record.js';
import type { RevocationStore, RevocationWrite } from '../ports-revocations.js';
import { durationArgument, timeArgument } from './arguments.js';
import type { Io } from './io.js';
import { configOption, fail, jsonOption, sourceOf } from './options.js';
import { chosenKind, issuerOf, targetOf, type TargetOptions } from './revoke-target.js';
import { listAsData, listInWords, revocationAsData, revocationInWords, undoneWords, writeAsData } from './revoke-view.js';
import { failStore, openSharedStore } from './shared-store.js';
import { userName } from './user-name.js';

interface Options extends TargetOptions {
  readonly config: string;
  readonly issuer?: string;
  readonly for?: number;
  readonly reason?: string;
  readonly list?: true;
  readonly undo?: string;
  readonly json?: true;
}

const noSharedStore = 'keeps its store in the memory of the proxy: nobody else sees it. Write `revoked` in the config instead';

const again = '--list';

/** `sallyport revoke`: withdraws credentials on every proxy that shares the store. */
export function createRevokeCommand(io: Io): Command {
  return new Command('revoke')
    .description('Withdraw keys, subjects or tokens, on every proxy that shares the store (Redis), within a second and until a given end.')
    .addOption(configOption())
    .option('--key-id <id>', 'every token signed with this key: its `kid`')
    .option('--subject <subject>', 'every token and session of this caller or user')
    .option('--token-id <id>', 'the token with this `jti`')
    .option('--token-stdin', 'the token on standard input, which need not have a `jti`; only a digest of it is kept')
    .addOption(new Option('--issued-before <time>', 'every token issued before (RFC 3339), and those that do not say when they were').argParser(timeArgument))
    .option('--issuer <name>', 'only those of this issuer, by its name in the config; `sessions` for sessions of users')
    .addOption(new Option('--for <duration>', 'how long it holds: 1s to 31d; what is to hold for ever belongs in the config')
      .argParser(durationArgument('1s', '31d')))
    .option('--reason <text>', 'why, for those who read the list')
    .option('--list', 'print what is revoked through the store, and what was undone')
    .option('--undo <id>', 'take a revocation back')
    .addOption(jsonOption())
    .addHelpText('after', '\nOne of --key-id, --subject, --token-id, --token-stdin, --issued-before, --list and --undo;\n'
      + 'the first five need --for and --reason.\n'
      + 'A proxy that has read a revocation holds it to its end, whatever becomes of the store; only --undo ends it earlier.\n'
      + 'Exit code: 0 done, 1 there is no such revocation or no more room, 2 usage, or a store that no other process sees,\n'
      + '3 the store is out of reach, or fewer replicas than `store.redis.replicas` confirmed what was written.')
    .action((options: Options) => revoke(options, io));
}

/** Whether many may read it. What is refused is not repeated: it may hold what leaked. */
function isReason(text: string): boolean {
  return text.trim() !== '' && text.length <= maxReasonLength && !/\p{Cc}/u.test(text) && !/ey[\w-]{8,}\.[\w-]{8,}\./.test(text);
}

async function revoke(options: Options, io: Io): Promise<void> {
  const asked = usageProblem(options);
  if (asked !== null) {
    fail(startFailure('unreadable', asked), io);
    return;
  }
  const loaded = await loadConfig(sourceOf(options.config, io), io.env);
  if (!loaded.ok) {
    fail(loaded.error, io);
    return;
  }
  const made = options.list === true || options.undo !== undefined ? accept(null) : await revocationOf(options, loaded.value, io);
  if (!made.ok) {
    fail(made.error, io);
    return;
  }
  const opened = await openSharedStore(loaded.value.store, options.config, noSharedStore);
  if (!opened.ok) {
    fail(opened.error, io);
    return;
  }
  const { store, revocations, replicas } = opened.value;
  try {
    if (revocations === null) fail(startFailure('unreadable', `${options.config} ${noSharedStore}`), io);
    else if (made.value !== null) await write(revocations, { ...made.value, replicas }, options, io);
    else if (options.undo === undefined) await list(revocations, options, io);
    else await undo(revocations, { id: options.undo, replicas }, options, io);
  } finally {
    await store.close();
  }
}

function usageProblem(options: Options): string | null {
  if (options.reason !== undefined && !isReason(options.reason)) {
    return `--reason: allowed: a text of 1 to ${String(maxReasonLength)} characters, without control characters and without a token`;
  }
  const kind = chosenKind(options);
  const asked = [kind !== null, options.list === true, options.undo !== undefined].filter(Boolean);
  if (kind === 'several' || asked.length !== 1) {
    return 'allowed: exactly one of --key-id, --subject, --token-id, --token-stdin, --issued-before, --list and --undo';
  }
  if (kind !== null) return options.for === undefined || options.reason === undefined ? '--for and --reason are needed: how long it holds, and why' : null;
  if (options.for !== undefined || options.issuer !== undefined) return '--for and --issuer are of no use with --list and --undo';
  if (options.list === true && options.reason !== undefined) return '--reason is of no use with --list';
  return options.undo === undefined || isId(options.undo) ? null : '--undo: allowed: an id of 22 characters, as --list prints it';
}

function isId(text: string): boolean {
  return /^[\w-]{22}$/.test(text);
}

interface Made {
  readonly revocation: NewRevocation;
  readonly holdsMs: number;
  /** What the operator should think of. */
  readonly notes: readonly string[];
}

async function revocationOf(options: Options, config: CompiledConfig, io: Io): Promise<Result<Made, StartFailure>> {
  const issuer = issuerOf(options.issuer, config);
  if (!issuer.ok) return issuer;
  const holdsMs = options.for ?? 0;
  const target = await targetOf(options, { config, issuerName: options.issuer ?? null, holdsMs, nowMs: Date.now() }, io);
  if (!target.ok) return target;
  const { kind, value, notes } = target.value;
  return accept({
    revocation: { id: newId(), kind, value, issuer: issuer.value, reason: options.reason ?? '', author: userName() }, holdsMs, notes,
  });
}

/** 128 random bits. None begins with a dash: it is going to be an argument. */
function newId(): string {
  for (;;) {
    const id = randomBytes(16).toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}

interface Replicated {
  /** How many have to confirm. */
  readonly replicas: number;
}

async function write(store: RevocationStore, made: Made & Replicated, options: Options, io: Io): Promise<void> {
  const { revocation, holdsMs, notes, replicas } = made;
  const written = await store.revoke(revocation, holdsMs, replicas);
  if (!written.ok) {
    failStore(written.error, again, io);
    return;
  }
  const { createdAtMs, endsAtMs, ...became } = written.value;
  const whole = { ...revocation, createdAtMs, endsAtMs };
  const told = writeAsData(became, replicas);
  io.stdout(options.json === true ? `${JSON.stringify({ ...revocationAsData(whole), ...told })}\n` : revocationInWords(whole, options.config, told));
  for (const note of [...notes, ...notAnnounced(became.isAnnounced)]) io.stderr(`${note}\n`);
  conclude(became, replicas, 'proxies refuse it now, and a fail-over may lose it: revoke again when there are replicas', io);
}

/** What a fail-over may take back is not done, though it is written. */
function conclude({ confirmedReplicas }: RevocationWrite, replicas: number, otherwise: string, io: Io): void {
  const confirmed = confirmedReplicas ?? 0;
  if (confirmed >= replicas) io.exit(0);
  else fail(startFailure('unavailable', `only ${String(confirmed)} of ${String(replicas)} replicas confirmed it in time: ${otherwise}`), io);
}

function notAnnounced(isAnnounced: boolean): readonly string[] {
  if (isAnnounced) return [];
  return ['Redis did not pass the news on (its user may lack a right: docs/storage.md): proxies learn of it when they look next, twice a second'];
}

async function list(store: RevocationStore, { json }: Options, io: Io): Promise<void> {
  const loaded = await store.load(null);
  if (!loaded.ok) failStore(loaded.error, again, io);
  // Asked without a version, the store always says what it holds.
  if (!loaded.ok || loaded.value === null) return;
  io.stdout(json === true ? `${JSON.stringify(listAsData(loaded.value))}\n` : listInWords(loaded.value));
  io.exit(0);
}

async function undo(store: RevocationStore, { id, replicas }: Replicated & { readonly id: string }, { reason, json }: Options, io: Io): Promise<void> {
  const author = userName();
  const undone = await store.undo(id, { reason: reason ?? null, author }, replicas);
  if (!undone.ok) {
    failStore(undone.error, again, io);
    return;
  }
  const { found, ...became } = undone.value;
  if (json === true) io.stdout(`${JSON.stringify({ id, result: found, author, reason: reason ?? null, ...writeAsData(became, replicas) })}\n`);
  io.stderr(`${undoneWords[found]}\n`);
  for (const note of notAnnounced(became.isAnnounced)) io.stderr(`${note}\n`);
  // To undo it again would find what was written down now, and say nothing of the id that was meant.
  if (found === 'unknown') io.exit(1);
  else conclude(became, replicas, 'a fail-over may bring the revocation back: undo it again when there are replicas', io);
}
