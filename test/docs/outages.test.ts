import t from 'tap';
import { outageTables } from '../chaos/outages-page.js';
import { readProjectFile } from '../support/source-files.js';

t.test('docs/outages.md says of each outage what the tests hold a proxy to', (t) => {
  const page = readProjectFile('docs/outages.md');
  for (const [name, table] of Object.entries(outageTables)) {
    const written = new RegExp(`<!-- ${name} -->\\n([^]*?)\\n<!-- /${name} -->`).exec(page)?.[1];
    t.equal(written, table, name);
  }
  t.end();
});
