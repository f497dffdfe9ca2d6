import t from 'tap';
import { readProjectFile } from '../support/source-files.js';
import { codeSpans, tableBelow } from './pages.js';

/** What of a JSON Schema says which keys there are. */
interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

/** Made by the proxy, not read by it. */
const made = ['egress.listen.unix'];

/** Keys that name a file, as docs spell them: `NAME` for a name, `[]` for a place in a list. */
function filesIn(schema: Schema, key = ''): readonly string[] {
  const { description = '', properties = {}, additionalProperties, items, anyOf = [] } = schema;
  return [
    ...(description.includes('Allowed: the path of a file') ? [key] : []),
    ...Object.entries(properties).flatMap(([name, of]) => filesIn(of, key === '' ? name : `${key}.${name}`)),
    ...(typeof additionalProperties === 'object' ? filesIn(additionalProperties, `${key}.NAME`) : []),
    ...(items === undefined ? [] : filesIn(items, `${key}[]`)),
    ...anyOf.flatMap((each) => filesIn(each, key)),
  ];
}

/** The keys of a cell: the first in full, the others with the folder of the first. */
function keysOf(cell: string): readonly string[] {
  const [first = '', ...others] = codeSpans(cell);
  const folder = first.slice(0, first.lastIndexOf('.') + 1);
  return [first, ...others.map((name) => `${folder}${name}`)];
}

t.test('docs/operations.md says of each file that a config can name when it is read again', (t) => {
  const schema = JSON.parse(readProjectFile('config.schema.json')) as Schema;
  const named = filesIn(schema).filter((key) => !made.includes(key));
  const rows = tableBelow('docs/operations.md', '### Files that the config names');
  t.ok(named.length >= 27, `${String(named.length)} keys`);
  t.same(rows.flatMap(([cell = '']) => (cell.includes('${file:') ? [] : keysOf(cell))).toSorted(), named.toSorted());
  for (const [file = '', again = ''] of rows) t.match(again, /^(watched|at each use)/, file);
  t.end();
});
