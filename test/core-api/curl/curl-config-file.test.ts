import { execFile } from 'node:child_process';
import { chmodSync, chownSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { createCoreClient } from '../../../src/core-api/core-client.js';
import { readCurlConfig } from '../../../src/core-api/curl/curl-config-file.js';
import { certificates } from '../../support/certificates.js';
import { curl } from '../../support/curl.js';
import { startFakeCore, type ReceivedCall } from '../../support/fake-core.js';
import { makeFifo, sh } from '../../support/sh.js';
import { tempDir } from '../../support/temp-dir.js';

const run = promisify(execFile);
const key = 'k3y-of-twenty-and-more-characters';

function write(t: Parameters<typeof tempDir>[0], text: string | Buffer, mode = 0o600): string {
  const path = join(tempDir(t), 'core.curl');
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

async function refusal(path: string): Promise<string> {
  const read = await readCurlConfig(path, { cwd: '/' });
  return read.ok ? 'accepted' : read.error;
}

/** What an operator's headers are, without those that each client makes for itself. */
function operatorsHeaders({ headers }: ReceivedCall): readonly (readonly [string, string])[] {
  const own = ['host', 'connection', 'accept', 'content-length', 'content-type'];
  return headers
    .filter(([name, value]) => !own.includes(name) && !(name === 'user-agent' && /^(curl\/|sallyport)/.test(value)))
    .map(([name, value]) => [name, value] as const)
    .sort(([a], [b]) => a.localeCompare(b));
}

t.test('the same file means the same call to curl -K and to us', async (t) => {
  const core = await startFakeCore(t);
  const call = `${core.url}/recipe/jwt`;
  const files = [
    `url = ${call}\nheader = "api-key: ${key}"\n`,
    `# the Core\nurl = "${call}"\n\n-H "api-key: ${key}"\n-H "cdi-version: 5.4"   # newest\n`,
    `url:${call}\nheader:"api-key:${key}"\n`,
    `url ${call}\nheader api-key:${key}`,
    `url =: ${call}\r\nheader = "api-key: ${key}"\r\nheader = "rid: jwt"\r\n`,
    `--url ${call}\n--header "api-key: ${key}"\n--silent\n`,
    `-sSfHapi-key:${key}\n--url "${call}"\n`,
    `/ not an option\n* nor this\n\t# indented\n\turl\t=\t${call}\n\theader\t=\t"api-key:\\t${key} "\n`,
    `url = "${call}"\nheader = "x-odd: a \\"quoted\\" \\\\ back\\slash # no comment"\nheader = "api-key: ${key}" # comment\n`,
    `url = "${call}"\nuser-agent = "ops/1.0"\nheader = "Accept:"\nheader = "Content-Type: application/json"\nrequest = POST\ndata = @-\nno-progress-meter\n`,
    `url = "${call}"\nheader = "x-colons: a:b=c"\nmax-time = 10\nconnect-timeout = 2.5\nproto = "=http,https"\nretry = 2\nfail-with-body\ngloboff\n`,
  ];
  for (const text of files) {
    const path = write(t, text);
    const before = core.calls.length;
    await run(sh, ['-c', `echo "{}" | ${curl} -q -sS -K "$0" --data-binary @- >/dev/null`, path], { timeout: 20_000 });
    const read = await readCurlConfig(path, { cwd: '/' });
    if (!read.ok) throw new Error(read.error);
    const client = createCoreClient({
      ...read.value,
      baseUrl: read.value.url,
      rules: { allowHttp: false, allowPublic: false },
    });
    t.teardown(() => client.close());
    t.match(await client.call({ method: 'POST', path: '/recipe/jwt', body: {} }), { ok: true, value: { status: 200 } });
    const [fromCurl, fromUs] = core.calls.slice(before);
    if (fromCurl === undefined || fromUs === undefined) throw new Error('both call once');
    t.same(operatorsHeaders(fromUs), operatorsHeaders(fromCurl), text);
    t.same([fromUs.method, fromUs.target], [fromCurl.method, fromCurl.target], text);
  }
});

t.test("the file is regular, of mode 0600 or stricter, and the caller's own", async (t) => {
  const text = `url = http://127.0.0.1:1\nheader = "api-key: ${key}"\n`;
  for (const mode of [0o600, 0o400]) t.equal(await refusal(write(t, text, mode)), 'accepted', mode.toString(8));
  for (const mode of [0o644, 0o640, 0o604, 0o660, 0o620, 0o610, 0o700, 0o601, 0o1600, 0o4600]) {
    t.match(
      await refusal(write(t, text, mode)),
      new RegExp(`core\\.curl has mode 0?${mode.toString(8)}, .*chmod 600`),
      mode.toString(8),
    );
  }
  const good = write(t, text);
  const dir = tempDir(t);
  const link = join(dir, 'link');
  symlinkSync(good, link);
  t.match(await refusal(link), /symbolic link/);
  symlinkSync(dir, join(dir, 'folder'));
  linkSync(good, `${good}-hard`);
  t.equal(
    await refusal(join(dir, 'folder', '..', 'nothing')),
    `${join(dir, 'folder', '..', 'nothing')} does not exist`,
  );
  t.match(await refusal(dir), /no regular file/);
  t.match(await refusal('/dev/null'), /no regular file/);
  t.match(await refusal(join(dir, 'none')), /does not exist/);
  t.match(await refusal(makeFifo(join(dir, 'fifo'))), /no regular file/, 'a FIFO is not waited for');
});

t.test('a file of another user is refused', async (t) => {
  const path = write(t, `url = http://127.0.0.1:1\nheader = "api-key: ${key}"\n`);
  if (process.geteuid?.() === 0) {
    chownSync(path, 12_345, 12_345);
    t.match(await refusal(path), /belongs to another user \(uid 12345, this is uid 0\)/);
    return;
  }
  // Without the right to give files away: one that the system's own user has, and nobody may write.
  const read = await refusal('/etc/hosts');
  t.match(read, /has mode|belongs to another user/);
});

t.test('size and text', async (t) => {
  const line = 'url = http://127.0.0.1:1\n';
  const padding = (length: number): string => `${line}#${'x'.repeat(length - line.length - 1)}`;
  t.equal(await refusal(write(t, padding(64 * 1024))), 'accepted');
  t.match(await refusal(write(t, padding(64 * 1024 + 1))), /larger than 65536/);
  t.match(await refusal(write(t, Buffer.from([0x75, 0xff, 0xfe]))), /not UTF-8/);
  t.match(await refusal(write(t, `${line}proxy = ${key}\n`)), /core\.curl:2: `proxy`/);
});

t.test('a CA file is read, from the folder that the command runs in', async (t) => {
  const { ca, dir } = certificates(t);
  const text = (file: string): string => `url = https://core\ncacert = "${file}"\n`;
  const read = await readCurlConfig(write(t, text('ca.crt')), { cwd: dir });
  t.match(read, { ok: true, value: { ca: [ca.cert.trim()] } });
  t.match(await refusal(write(t, text(join(dir, 'none.crt')))), /CA file .*none\.crt does not exist/);
  t.match(await refusal(write(t, text(ca.keyFile))), /holds no PEM certificate/);
  mkdirSync(join(dir, 'folder'));
  t.match(await refusal(write(t, text(join(dir, 'folder')))), /no regular file/);
  t.ok(readFileSync(ca.certFile).length > 0);
});
