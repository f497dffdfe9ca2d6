import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { projectDir } from '../support/project-dir.js';

/** Cases of our own in the classes of the corpora, for where those are not at hand. */
const own: readonly string[] = [
  '../../etc/passwd',
  '..%2f..%2fetc%2fpasswd',
  '..%5c..%5cwindows',
  '%2e%2e/%2e%2e/etc/passwd',
  '..%c0%af..%c0%afetc',
  '....//....//etc',
  '..;/..;/admin',
  '.%2e/%2e./x',
  '%252e%252e%252fetc',
  '..%00/etc',
  'a/b/../c',
  'a/./b',
  'a//b',
  'a%20b',
  'a%2fb',
  'a?b#c',
  'caf%C3%A9',
  'plain',
  'with space',
  '\\\\host\\share',
  '%uff0e%uff0e/',
  '~root/x',
];

/** What a client could send of every corpus: printable targets below the prefix. */
export function readCorpusTargets(prefix: string): string[] {
  const traversal = ['traversal-140.txt', 'traversal-887.txt'].flatMap((name) => readCorpus(name).split(/\r?\n/));
  const urls = parseUrls(readCorpus('whatwg-urltestdata.json'));
  const inputs = [...own, ...traversal, ...urls].map((text) => text.replaceAll('{FILE}', 'etc/passwd'));
  // Spaces and controls end the request line: what the parser makes of them is another test's matter.
  const sendable = inputs.filter((text) => text !== '' && /^[\x21-\xff]*$/.test(text));
  return [...new Set(sendable.flatMap((text) => [`${prefix}${text}`, ...(text.startsWith('/') ? [text] : [])]))];
}

function parseUrls(text: string): string[] {
  if (text === '') return [];
  const entries = JSON.parse(text) as readonly unknown[];
  return entries.flatMap((entry) =>
    typeof entry === 'object' && entry !== null && 'input' in entry && typeof entry.input === 'string'
      ? [entry.input]
      : [],
  );
}

function readCorpus(name: string): string {
  const path = resolve(projectDir, process.env['SALLYPORT_CORPORA'] ?? '../shared/corpora', name);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}
