import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';

interface Package {
  readonly version?: string;
  readonly engines?: { readonly node?: string };
}

/** What npm itself compares with; it comes with Fastify. */
const { satisfies, minVersion } = createRequire(import.meta.url)('semver') as {
  readonly satisfies: (version: string, range: string) => boolean;
  readonly minVersion: (range: string) => { readonly version: string };
};

const read = (path: string): unknown => JSON.parse(readFileSync(join(projectDir, path), 'utf8'));

t.test('no package that is installed refuses a Node.js that package.json allows', (t) => {
  const { engines } = read('package.json') as { engines: { node: string } };
  const { packages } = read('package-lock.json') as { packages: Readonly<Record<string, Package>> };
  t.equal(minVersion(engines.node).version, '20.19.0');
  t.ok(Object.keys(packages).length > 300);
  for (const node of [minVersion(engines.node).version, '22.13.0', '24.0.0']) {
    const refusing = Object.entries(packages)
      .filter(([, { engines: asked }]) => asked?.node !== undefined && !satisfies(node, asked.node))
      .map(([place, { version = '', engines: asked }]) => `${place} ${version} asks for ${asked?.node ?? ''}`);
    t.same(refusing, [], `Node.js ${node}`);
  }
  t.end();
});
