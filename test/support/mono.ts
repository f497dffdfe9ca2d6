/** ASP.NET on Mono, by FastCGI behind nginx: Debian's `xsp4` does not start with its own Mono. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepting } from './accepting.js';
import { freePort } from './listening.js';
import { runNginx } from './nginx.js';
import { startUpstreamProcess } from './upstream-process.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

const references = ['System.Web', 'System.Web.Mvc', 'System.Web.Routing'].map((name) => `${name}.dll`);

/** Compiles this C# and runs its `Service`, an `HttpApplication`. */
export async function startAspNet(t: Scope, text: string): Promise<number> {
  const folder = tempDir(t);
  mkdirSync(join(folder, 'bin'));
  const source = join(folder, 'service.cs');
  writeFileSync(source, text);
  writeFileSync(join(folder, 'Global.asax'), '<%@ Application Inherits="Service" %>\n');
  writeFileSync(join(folder, 'Web.config'), '<configuration/>\n');
  const output = join(folder, 'bin', 'Service.dll');
  execFileSync('mcs', ['-target:library', `-out:${output}`, `-r:${references.join(',')}`, source], { stdio: 'pipe' });
  const application = await startUpstreamProcess(t, {
    command: 'fastcgi-mono-server4',
    args: (address) => [`--applications=/:${folder}`, `--socket=tcp:${address}`],
    // Where it compiles `Global.asax`.
    env: { TMPDIR: folder },
  });
  const port = await freePort();
  const server = `
    server {
      listen 127.0.0.1:${String(port)};
      location / {
        include /etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME ${folder}$fastcgi_script_name;
        fastcgi_pass 127.0.0.1:${String(application)};
      }
    }`;
  await accepting(runNginx(t, server), port, 'nginx');
  return port;
}
