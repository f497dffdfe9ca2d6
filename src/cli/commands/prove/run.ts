import { pathIn } from '../../../lib/files.js';
import { localFiles } from '../../../adapters/files/files.js';
import { systemClock } from '../../../adapters/system/clock.js';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import { createProofSigner } from '../../../core-api/proof-signer.js';
import { readBearer, usualScheme } from '../../../decision/token/credential.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { secretFileRule } from '../../../lib/secret-file-access.js';
import { escapeControls } from '../../../lib/text.js';
import type { ProofSigner } from '../../../ports/tokens.js';
import type { Io } from '../../io.js';
import { fail } from '../../options.js';
import { readToken } from '../../stdin.js';

export interface ProveOptions {
  readonly key: string;
  readonly nonce?: string;
  readonly json?: true;
}

interface Request {
  readonly method: string;
  readonly url: URL;
}

interface Proved {
  readonly authorization: string;
  readonly dpop: string;
}

/** An RSA key of 4,096 bits is 3 KB. */
const maxKeyBytes = 64 * 1_024;

/** Prints the headers of one request, whose proof counts once. */
export async function prove(request: Request, options: ProveOptions, io: Io): Promise<void> {
  const proved = await provedBy(request, options, io);
  if (!proved.ok) {
    fail(proved.error, io);
    return;
  }
  const { authorization, dpop } = proved.value;
  io.stdout(
    options.json === true ? `${JSON.stringify(proved.value)}\n` : `Authorization: ${authorization}\nDPoP: ${dpop}\n`,
  );
  io.exit(0);
}

async function provedBy(
  { method, url }: Request,
  { key, nonce }: ProveOptions,
  io: Io,
): Promise<Result<Proved, StartFailure>> {
  const signer = await readKey(key, io);
  if (!signer.ok) return signer;
  const token = await readToken(io);
  if (!token.ok) return token;
  if (!readBearer(usualScheme + token.value).ok) {
    return unusable('standard input: no token; allowed: one of at most 8 KiB, as it stands in Authorization');
  }
  const dpop = signer.value.prove({ method, url, token: token.value, nonce: nonce ?? null, nowMs: systemClock.now() });
  return accept({ authorization: `DPoP ${token.value}`, dpop });
}

async function readKey(file: string, io: Io): Promise<Result<ProofSigner, StartFailure>> {
  const path = pathIn(io, file);
  const text = await localFiles.read(path, { maxBytes: maxKeyBytes });
  if (!text.ok) return unusable(`--key ${file}: ${text.error}`);
  const exposure = localFiles.exposure(path);
  if (exposure !== null) return unusable(`--key ${file}: ${exposure}; allowed: ${secretFileRule}`);
  const signer = createProofSigner(text.value);
  return signer.ok ? signer : unusable(`--key ${file}: ${signer.error}`);
}

function unusable(message: string): Result<never, StartFailure> {
  return refuse(startFailure('unreadable', escapeControls(message)));
}
