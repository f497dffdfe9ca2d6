/** Real servers of scripts, with one that says that it ran. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepting } from '../support/accepting.js';
import { runApache } from '../support/apache.js';
import { freePort } from '../support/listening.js';
import { startPhpFolder } from '../support/php.js';
import { startPythonCgi } from '../support/python.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import type { Router } from './routers.js';

export interface ScriptServer extends Router {
  /** Path of the script. */
  readonly path: string;
}

const php = "<?php header('X-Ran: desk'); echo 'desk';\n";
const shell = ['#!/bin/sh', "printf 'X-Ran: desk\\r\\nContent-Type: text/plain\\r\\n\\r\\ndesk'", ''].join('\n');

export const scriptServers: readonly ScriptServer[] = [
  {
    name: 'PHP’s own server',
    path: '/desk.php',
    folds: ['head_as_get', 'path_info'],
    start: async (t) => startPhpFolder(t, { 'desk.php': php }),
  },
  {
    name: 'Apache, a script by its ending',
    path: '/desk.cgi',
    folds: ['head_as_get', 'path_info'],
    start: startApache,
  },
  {
    name: 'Apache, a script in a folder of programs',
    path: '/cgi-bin/desk',
    folds: ['head_as_get', 'path_info'],
    start: startApache,
  },
  {
    name: 'Python’s http.server with CGI',
    path: '/cgi-bin/desk',
    folds: ['head_as_get', 'path_info'],
    start: async (t) => startPythonCgi(t, scriptFolder(t)),
  },
];

/** A folder with `desk.cgi` and `cgi-bin/desk`. */
function scriptFolder(t: Scope): string {
  const folder = tempDir(t);
  mkdirSync(join(folder, 'cgi-bin'));
  for (const name of ['desk.cgi', 'cgi-bin/desk']) {
    writeFileSync(join(folder, name), shell);
    chmodSync(join(folder, name), 0o755);
  }
  // Servers that root starts run scripts as somebody else.
  chmodSync(folder, 0o755);
  return folder;
}

async function startApache(t: Scope): Promise<number> {
  const folder = scriptFolder(t);
  const port = await freePort();
  const config = `
    DocumentRoot ${folder}
    ScriptAlias /cgi-bin/ ${folder}/cgi-bin/
    AddHandler cgi-script .cgi
    TypesConfig /dev/null
    <Directory ${folder}>
      Options +ExecCGI
      Require all granted
    </Directory>`;
  await accepting(runApache(t, port, ['mpm_event', 'authz_core', 'alias', 'mime', 'cgi'], config), port, 'apache');
  return port;
}
