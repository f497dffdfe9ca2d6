/** A Core, a curl config file for it and the command beside it. */
import { randomUUID } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../../src/cli/program.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

/** Of this run alone: other processes of the machine may run the same tests. */
export const apiKey = `k3y-${randomUUID()}`;
export const issuer = 'https://api.example.com';
export const claims = {
  aud: 'orders',
  sub: 'checkout',
  source: 'microservice',
  token_type: 'service',
  permissions: ['orders:read', 'orders:write'],
};

/** Writes a curl config file for a Core, of mode 0600. */
export function curlFile(t: Scope, url: string, more = '', mode = 0o600): string {
  const path = join(tempDir(t), 'core.curl');
  writeFileSync(path, `url = "${url}/recipe/jwt"\nheader = "api-key: ${apiKey}"\n${more}`);
  chmodSync(path, mode);
  return path;
}

/** Runs `mint` in this process. */
export async function runMint(
  file: string,
  args: readonly string[] = [],
  stdin: string = JSON.stringify(claims),
  cwd = '/',
): Promise<CapturedIo> {
  const io = captureIo({ stdin, cwd });
  await run(['mint', '--curl-config', file, '--issuer', issuer, ...args], io);
  return io;
}

/** The parts of a token that say something. */
export function decoded(token: string): {
  readonly header: Readonly<Record<string, unknown>>;
  readonly payload: Readonly<Record<string, unknown>>;
} {
  const [header = '', payload = ''] = token
    .trim()
    .split('.')
    .map((part) => Buffer.from(part, 'base64url').toString());
  return {
    header: JSON.parse(header) as Record<string, unknown>,
    payload: JSON.parse(payload) as Record<string, unknown>,
  };
}
