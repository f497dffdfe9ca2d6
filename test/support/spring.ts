/** Spring MVC on Jetty. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { java, javac } from './javac.js';
import { startUpstreamProcess } from './upstream-process.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Debian's Spring 4.3 still has the names of Spring 3. */
const jars = [
  ...['aop', 'beans', 'context', 'core', 'expression', 'web', 'web.servlet'].map((name) => `spring3-${name}`),
  ...['http', 'io', 'security', 'server', 'servlet', 'util', 'util-ajax'].map((name) => `jetty9-${name}`),
  'commons-logging',
  'servlet-api',
].map((name) => `/usr/share/java/${name}.jar`);

/**
 * Compiles this Java and runs its `Service`: its arguments are an address to listen on, as `127.0.0.1:PORT`, and the
 * URL of a file with these settings, the XML of an application context.
 */
export async function startSpring(t: Scope, text: string, settings: string): Promise<number> {
  const folder = tempDir(t);
  const [source, context] = [join(folder, 'Service.java'), join(folder, 'context.xml')];
  writeFileSync(source, text);
  writeFileSync(context, settings);
  const classPath = [folder, ...jars].join(':');
  execFileSync(javac, ['-cp', classPath, '-d', folder, source], { stdio: 'pipe' });
  return startUpstreamProcess(t, {
    command: java,
    // It runs for seconds: to compile it better takes longer than it saves.
    args: (address) => ['-XX:TieredStopAtLevel=1', '-cp', classPath, 'Service', address, `file:${context}`],
  });
}
