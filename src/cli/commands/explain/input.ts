import { pathIn } from '../../../lib/files.js';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import { maxPemBytes } from '../../../app/config/named-files.js';
import { readText } from '../../../adapters/files/read-file.js';
import type { CallerCertificate } from '../../../decision/binding/certificate.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { defaultMaxDepth, jsonProblemWords, parseStrictJson, type JsonObject } from '../../../lib/strict-json.js';
import { readCertificate } from '../../../policy-test/simulate/certificates.js';
import type { Io } from '../../io.js';

/** A payload is smaller than its token, which has 8 KiB at most; what is longer is another file. */
const maxInputBytes = 64 * 1024;

/** Reads the certificate that a caller is taken to show; `null` where no file is named. */
export async function readCertificateFile(
  file: string | undefined,
  io: Io,
): Promise<Result<CallerCertificate | null, StartFailure>> {
  if (file === undefined) return accept(null);
  const text = await readText(pathIn(io, file), { maxBytes: maxPemBytes });
  const read = text.ok ? readCertificate(text.value) : null;
  if (read !== null) return accept(read);
  const why = text.ok ? 'no certificate; allowed: one in PEM' : text.error;
  return refuse(startFailure('unreadable', `--client-certificate ${file}: ${why}`));
}

/** Reads a JSON object of claims. */
export async function readClaims(file: string, io: Io): Promise<Result<JsonObject, StartFailure>> {
  const text = await readText(pathIn(io, file), { maxBytes: maxInputBytes });
  if (!text.ok) return refuse(startFailure('unreadable', `${file}: ${text.error}`));
  const parsed = parseStrictJson(Buffer.from(text.value), { maxDepth: defaultMaxDepth });
  if (!parsed.ok) {
    return refuse(
      startFailure(
        'unreadable',
        `${file}: ${jsonProblemWords[parsed.error]}; allowed: a JSON object of claims, the payload of a token`,
      ),
    );
  }
  return accept(parsed.value);
}
