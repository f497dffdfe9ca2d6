import { needsOf } from './needs.mjs';
import { isThere } from './programs.mjs';

const usage = `npm test                                     everything that can be run here, an hour on two cores; installs nothing
npm test -- --install                        first gets what is missing: Debian packages by apt-get, as root or by sudo without a
                                             password, and helm and kubectl into node_modules/.cache; what stays missing is a failure
npm test -- test/proxy/client-app.test.ts …  these files or folders only, without the other steps; a few seconds
npm test -- --types test/proxy/ …            looks at the types of everything first, ten seconds more
npm run test:unit                            the files that start no process and no program, many in one process
npm test -- --changed                        the files that load or name what changed since this branch left main, or --changed=REF
npm test -- --long                           the *.long.test.ts files too
npm test -- --no-lint                        without the linter

Node.js 20.19 or later and npm are all it takes. A test file that needs a program which is not here is not run, and named. Debian starts
some of the servers that it installs as services: redis-server, postgresql, prometheus and what else the list calls so.
`;

/** Says what the tests take, and what of it is here. */
export async function printHelp(files) {
  console.log(usage);
  for (const { program, files: those } of needsOf(files)) {
    const here = (await isThere(program)) ? 'here   ' : 'missing';
    const from =
      program.debian === undefined
        ? (program.hint ?? 'fetched by --install, on linux x64')
        : `Debian: ${program.debian.join(' ')}`;
    console.log(`${here}  ${program.name.padEnd(20)} ${String(those.length).padStart(4)} test files   ${from}`);
  }
}
