import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openPage, type OpenPage } from '../support/page.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

/** Opens a page from where it lies on the disk, as people do who were given it. */
export async function openFile(t: Scope, html: string, fragment = ''): Promise<OpenPage> {
  const file = join(tempDir(t), 'playground.html');
  writeFileSync(file, html);
  return openPage(t, `${pathToFileURL(file).href}${fragment}`);
}
