import { isMap, parseDocument, stringify, type Pair, type Scalar, type YAMLMap } from 'yaml';

/** A value of the chart, as `values.yaml` has it. */
interface ChartValue {
  readonly path: string;
  /** What stands there unless somebody sets it; empty where the rows below it say so. */
  readonly standard: string;
  /** The comment above it, from `--` on; empty where there is none. */
  readonly meaning: string;
}

const begin = '<!-- The table is written by `npm run generate`, from values.yaml. -->\n';
const end = '<!-- The end of the table. -->\n';

/** The chart's README with the table of its values renewed. */
export function chartReadme(readme: string, values: string): string {
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)];
  if (from < 0 || to < from) throw new Error('helm/sallyport/README.md: the marks of the table are missing');
  const rows = chartValues(values).map(
    ({ path, standard, meaning }) => `| \`${path}\` | ${code(standard)} | ${meaning.replaceAll('|', '\\|')} |\n`,
  );
  return `${readme.slice(0, from + begin.length)}\n| value | default | meaning |\n| --- | --- | --- |\n${rows.join('')}\n${readme.slice(to)}`;
}

/** Every value of `values.yaml`, in its order. A map is one value where nothing is said of what is in it. */
export function chartValues(text: string): readonly ChartValue[] {
  const { contents } = parseDocument<YAMLMap<Scalar<string>>>(text);
  return isMap(contents) ? rowsOf(contents, '') : [];
}

function rowsOf(map: YAMLMap, path: string): readonly ChartValue[] {
  return map.items.flatMap((item) => {
    const name = `${path}${String(item.key)}`;
    const meaning = meaningOf(item, map);
    if (!isMap(item.value) || !isExplainedInside(item.value)) {
      return [{ path: name, standard: yamlOf(item.value), meaning }];
    }
    return [...(meaning === '' ? [] : [{ path: name, standard: '', meaning }]), ...rowsOf(item.value, `${name}.`)];
  });
}

function isExplainedInside(map: YAMLMap): boolean {
  return map.items.some((item) => meaningOf(item, map) !== '' || (isMap(item.value) && isExplainedInside(item.value)));
}

/** The comment above the first key of a map belongs to the map. */
function meaningOf({ key }: Pair, map: YAMLMap): string {
  const above = map.items[0]?.key === key ? map.commentBefore : null;
  const own = isScalarKey(key) ? key.commentBefore : null;
  const lines = `${above ?? ''}\n${own ?? ''}`.split('\n').map((line) => line.trim());
  const first = lines.findIndex((line) => line.startsWith('-- '));
  return first < 0 ? '' : lines.slice(first).join(' ').slice('-- '.length).trim();
}

function isScalarKey(key: unknown): key is Scalar {
  return typeof key === 'object' && key !== null && 'commentBefore' in key;
}

function yamlOf(value: unknown): string {
  return stringify(value, {
    collectionStyle: 'flow',
    lineWidth: 0,
    defaultStringType: 'QUOTE_DOUBLE',
    defaultKeyType: 'PLAIN',
  }).trim();
}

function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}
