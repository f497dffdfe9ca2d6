/** The licences of what is in the bundle, whole: whoever hands the image on hands these on with it. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const fileName = /^(?:licen[cs]e|copying|notice|third[-_]?party[-_]?(?:licen[cs]es?|notices))(?:[.-][a-z.-]+)?$/i;
const line = '='.repeat(80);

/** Words that stand in the text of a licence, and not where somebody only names it. */
const marks = [
  ['MIT', /Permission is hereby granted, free of charge/],
  ['ISC', /Permission to use, copy, modify, and(?:\/or)? distribute this software/],
  ['BSD-2-Clause', /Redistribution and use in source and binary forms/],
  ['BSD-3-Clause', /Redistribution and use in source and binary forms/],
  ['Zlib', /This software is provided 'as-is'/],
  ['Apache-2.0', /TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION/],
];

/** What packages that come without a text of their licence are under, as their package.json says. */
const withoutText = {
  'abstract-logging@2.0.1': () => mit('James Sumners'),
  'tr46@0.0.3': () => mit('Sebastian Mayr'),
  'supertokens-js-override@0.0.4': apache,
  // These two have a copyright line, and name the licence by its address.
  'cluster-key-slot@1.1.1': apache,
  // Its file has the MIT part alone; the other stands in its sources.
  'pako@2.2.0': zlib,
  'supertokens-node@24.0.3': apache,
};

/**
 * The notices of packages, as text. Throws where one has neither the text of its licence nor a line in the table above.
 *
 *   packages    each as `{ name, version, license, folder }`, its folder from `root`
 */
export function noticesOf(packages, root = '.') {
  const sections = packages.map((one) => {
    const { homepage } = JSON.parse(readFileSync(join(root, one.folder, 'package.json'), 'utf8'));
    return [
      line,
      `${one.name} ${one.version}: ${one.license}`,
      ...(homepage === undefined ? [] : [homepage]),
      '',
      ...textsOf(one, root),
    ].join('\n');
  });
  const start =
    'Sallyport is licensed under the Apache License, Version 2.0: see LICENSE. It holds the packages below, each under its own licence.';
  return `${start}\n\n${sections.join('\n')}`;
}

function textsOf({ name, version, license, folder }, root) {
  // A native build of a package is the package's own work, for one platform.
  const [, whole = null] = /^(@node-rs\/[a-z0-9]+)-/.exec(name) ?? [];
  const at = join(root, whole === null ? folder : folder.replace(name, whole));
  const texts = licenceFiles(at).map((file) => readFileSync(file, 'utf8'));
  const missing = marks.filter(
    ([id, mark]) => (license ?? '').split(/[^A-Za-z0-9.-]+/).includes(id) && !texts.some((text) => mark.test(text)),
  );
  if (texts.length === 0 || missing.length > 0) {
    const known = withoutText[`${name}@${version}`];
    if (known === undefined) {
      throw new Error(
        `${name} ${version} (${license ?? 'none named'}) has no text of its licence: add it to ${import.meta.filename}`,
      );
    }
    texts.push(known());
  }
  return texts.map((text) => `${text.replaceAll('\r\n', '\n').trim()}\n`);
}

/** Its own, and those of what it took from others; not those of its dependencies. */
function licenceFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : licenceFiles(path);
      return fileName.test(entry.name) ? [path] : [];
    });
}

function apache() {
  return readFileSync(new URL('../LICENSE', import.meta.url), 'utf8');
}

function zlib() {
  return `(C) 1995-2013 Jean-loup Gailly and Mark Adler
(C) 2014-2017 Vitaly Puzrin and Andrey Tupitsin

This software is provided 'as-is', without any express or implied warranty. In no event will the authors be held liable for any damages arising from the
use of this software.

Permission is granted to anyone to use this software for any purpose, including commercial applications, and to alter it and redistribute it freely,
subject to the following restrictions:

1. The origin of this software must not be misrepresented; you must not claim that you wrote the original software. If you use this software in a
   product, an acknowledgment in the product documentation would be appreciated but is not required.
2. Altered source versions must be plainly marked as such, and must not be misrepresented as being the original software.
3. This notice may not be removed or altered from any source distribution.
`;
}

function mit(holder) {
  return `MIT License

Copyright (c) ${holder}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to
deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or
sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.
`;
}
