import { randomBytes } from 'node:crypto';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import type { CompiledConfig } from '../../../config/types.js';
import { accept, type Result } from '../../../lib/result.js';
import { maxReasonLength, revocationAsData, type NewRevocation } from '../../../decision/revocation/record.js';
import type { RevocationStore, RevocationWrite } from '../../../ports/revocations.js';
import { loadChosen } from '../../config/load.js';
import type { ConfigArguments } from '../../config/argument.js';
import { inputArgument } from '../../config/choose.js';
import type { Io } from '../../io.js';
import { fail, failUsage } from '../../options.js';
import { chosenKind, issuerOf, targetOf, type TargetOptions } from './target.js';
import { listAsData, listInWords, revocationInWords, undoneWords, writeAsData } from './format.js';
import { failStore, openSharedStore } from '../../shared-store.js';
import { userName } from '../../process-io.js';

export interface RevokeOptions extends TargetOptions {
  readonly config?: string;
  readonly issuer?: string;
  readonly for?: number;
  readonly reason?: string;
  readonly list?: true;
  readonly undo?: string;
  readonly json?: true;
}

const noSharedStore =
  'keeps its store in the memory of the proxy: nobody else sees it. Write `revoked` in the config instead';

const again = '--list';

/** Whether many may read it. What is refused is not repeated: it may hold what leaked. */
function isReason(text: string): boolean {
  return (
    text.trim() !== '' &&
    text.length <= maxReasonLength &&
    !/\p{Cc}/u.test(text) &&
    !/ey[\w-]{8,}\.[\w-]{8,}\./.test(text)
  );
}

/** Revokes credentials, prints what is revoked, or takes it back. */
export async function revoke(options: RevokeOptions & ConfigArguments, io: Io): Promise<void> {
  const asked = usageProblem(options);
  if (asked !== null) {
    failUsage('revoke', asked, io);
    return;
  }
  const loaded = await loadChosen(options, io);
  if (!loaded.ok) {
    fail(loaded.error, io);
    return;
  }
  const { config, name, path } = loaded.value;
  const made =
    options.list === true || options.undo !== undefined ? accept(null) : await revocationOf(options, config, io);
  if (!made.ok) {
    fail(made.error, io);
    return;
  }
  const opened = await openSharedStore(config.store, name, noSharedStore, 'revocations');
  if (!opened.ok) {
    fail(opened.error, io);
    return;
  }
  const { store, revocations, replicas } = opened.value;
  try {
    if (revocations === null) fail(startFailure('unreadable', `${name} ${noSharedStore}`), io);
    else if (made.value !== null) {
      await write(
        revocations,
        { ...made.value, replicas, configArgument: path === null ? inputArgument : name },
        options,
        io,
      );
    } else if (options.undo === undefined) await list(revocations, options, io);
    else await undo(revocations, { id: options.undo, replicas }, options, io);
  } finally {
    await store.close();
  }
}

function usageProblem(options: RevokeOptions): string | null {
  if (options.reason !== undefined && !isReason(options.reason)) {
    return `--reason: allowed: a text of 1 to ${String(maxReasonLength)} characters, without control characters and without a token`;
  }
  const kind = chosenKind(options);
  const asked = [kind !== null, options.list === true, options.undo !== undefined].filter(Boolean);
  if (kind === 'several' || asked.length !== 1) {
    return 'allowed: exactly one of --key-id, --subject, --token-id, --token-stdin, --issued-before, --list and --undo';
  }
  if (kind !== null) {
    return options.for === undefined || options.reason === undefined
      ? '--for and --reason are needed: how long it holds, and why'
      : null;
  }
  if (options.for !== undefined || options.issuer !== undefined) {
    return '--for and --issuer are of no use with --list and --undo';
  }
  if (options.list === true && options.reason !== undefined) return '--reason is of no use with --list';
  return options.undo === undefined || isId(options.undo)
    ? null
    : '--undo: allowed: an id of 22 characters, as --list prints it';
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

async function revocationOf(
  options: RevokeOptions,
  config: CompiledConfig,
  io: Io,
): Promise<Result<Made, StartFailure>> {
  const issuer = issuerOf(options.issuer, config);
  if (!issuer.ok) return issuer;
  const holdsMs = options.for ?? 0;
  const target = await targetOf(
    options,
    { config, issuerName: options.issuer ?? null, holdsMs, nowMs: Date.now() },
    io,
  );
  if (!target.ok) return target;
  const { kind, value, notes } = target.value;
  return accept({
    revocation: { id: newId(), kind, value, issuer: issuer.value, reason: options.reason ?? '', author: userName() },
    holdsMs,
    notes,
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

async function write(
  store: RevocationStore,
  made: Made & Replicated & { readonly configArgument: string },
  { json }: RevokeOptions,
  io: Io,
): Promise<void> {
  const { revocation, holdsMs, notes, replicas, configArgument } = made;
  const written = await store.revoke(revocation, holdsMs, replicas);
  if (!written.ok) {
    failStore(written.error, again, io);
    return;
  }
  const { createdAtMs, endsAtMs, ...became } = written.value;
  const whole = { ...revocation, createdAtMs, endsAtMs };
  const told = writeAsData(became, replicas);
  io.stdout(
    json === true
      ? `${JSON.stringify({ ...revocationAsData(whole), ...told })}\n`
      : revocationInWords(whole, configArgument, told),
  );
  for (const note of [...notes, ...notAnnounced(became.isAnnounced)]) io.stderr(`${note}\n`);
  conclude(
    became,
    replicas,
    'proxies refuse it now, and a fail-over may lose it: revoke again when there are replicas',
    io,
  );
}

/** What a fail-over may take back is not done, though it is written. */
function conclude({ confirmedReplicas }: RevocationWrite, replicas: number, otherwise: string, io: Io): void {
  const confirmed = confirmedReplicas ?? 0;
  if (confirmed >= replicas) io.exit(0);
  else {
    fail(
      startFailure(
        'unavailable',
        `only ${String(confirmed)} of ${String(replicas)} replicas confirmed it in time: ${otherwise}`,
      ),
      io,
    );
  }
}

function notAnnounced(isAnnounced: boolean): readonly string[] {
  if (isAnnounced) return [];
  return [
    'Redis did not pass the news on (its user may lack a right: docs/storage.md): proxies learn of it when they look next, twice a second',
  ];
}

async function list(store: RevocationStore, { json }: RevokeOptions, io: Io): Promise<void> {
  const loaded = await store.load(null);
  if (!loaded.ok) failStore(loaded.error, null, io);
  // Asked without a version, the store always says what it holds.
  if (!loaded.ok || loaded.value === null) return;
  io.stdout(json === true ? `${JSON.stringify(listAsData(loaded.value))}\n` : listInWords(loaded.value));
  io.exit(0);
}

async function undo(
  store: RevocationStore,
  { id, replicas }: Replicated & { readonly id: string },
  { reason, json }: RevokeOptions,
  io: Io,
): Promise<void> {
  const author = userName();
  const undone = await store.undo(id, { reason: reason ?? null, author }, replicas);
  if (!undone.ok) {
    failStore(undone.error, again, io);
    return;
  }
  const { found, ...became } = undone.value;
  if (json === true) {
    io.stdout(
      `${JSON.stringify({ id, result: found, author, reason: reason ?? null, ...writeAsData(became, replicas) })}\n`,
    );
  }
  io.stderr(`${undoneWords[found]}\n`);
  for (const note of notAnnounced(became.isAnnounced)) io.stderr(`${note}\n`);
  // To undo it again would find what was written down now, and say nothing of the id that was meant.
  if (found === 'unknown') io.exit(1);
  else {
    conclude(became, replicas, 'a fail-over may bring the revocation back: undo it again when there are replicas', io);
  }
}
