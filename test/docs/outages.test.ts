import t from 'tap';
import { weatherTables } from '../chaos/weather-page.js';
import { readProjectFile } from '../support/source-files.js';

t.test('docs/outages.md says of each outage what the tests hold a proxy to', (t) => {
  const page = readProjectFile('docs/outages.md');
  for (const [name, table] of Object.entries(weatherTables)) {
    const written = new RegExp(`<!-- ${name} -->\\n([^]*?)\\n<!-- /${name} -->`).exec(page)?.[1];
    t.equal(written, table, name);
  }
  t.end();
});
