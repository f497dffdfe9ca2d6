/** Writes the reference of the config's keys from the schema. */
import { annotatedSchema, type JsonSchema } from './json-schema.js';

interface Setting {
  readonly path: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

const introduction = `# Configuration

Generated from the schema by \`npm run generate\`. To have keys completed and checked while writing, put the schema beside the file with
\`sallyport schema > sallyport.schema.json\`, and begin the file with \`# yaml-language-server: $schema=./sallyport.schema.json\`.

## The file

One YAML 1.2 document of at most 1 MiB. Unknown and repeated keys, anchors, aliases, merge keys, tags, directives and an empty
file are errors. \`sallyport check FILE\` lists every problem at once, as \`FILE:LINE:COLUMN: error|warning: what; allowed: …\` with the line
and a caret beneath. Of YAML that cannot be read, the first cause is told and not what follows from it. Values that may be secret are shown as
\`***\`: those of \`api_key\`, of keys that there are not, what stands for a user or password in a URL, tokens.

- **Null** is written \`null\` or \`~\`. A key with nothing behind it counts as null as well, where the key takes that; \`check\` warns of it.
- **Durations** are whole numbers with a unit: \`250ms\`, \`5s\`, \`15m\`, \`24h\`, \`7d\`.
- **Sizes** are whole numbers with a unit: \`512B\`, \`64KiB\`, \`1MiB\`, \`1GiB\`.
- **Placeholders** stand in any string: \`\${env:NAME}\` for an environment variable, \`\${file:PATH}\` for the content of a file
  without its last newline. Their text is never read as YAML. A string that is one placeholder and nothing else is read as the number
  or truth value that its key asks for. A missing variable or file is an error. \`$\${\` is a plain \`\${\`. Inside \`{…}\` and \`[…]\`,
  YAML wants quotes around them. Problems name the placeholder, never what it stands for.
- **Secrets** come from files: \`\${file:PATH}\`, \`key_file\`, \`password_file\`. \`check\` warns of one that others
  [may read](operations.md#files-of-secrets), and of one that comes from the environment.
- **Files** that the config names are read at start (and again when they change), not by \`check\`, which only looks at who may
  read those of secrets. A relative path, in a key or in
  \`\${file:PATH}\`, starts from the folder of the config; where that comes from standard input, from the working folder. A link to the
  config is not followed for this: what counts is the folder that the command was given.

## Routes

A request is for the route with the most specific path that matches and has a route for its method: from left to right a literal
beats \`{x}\` beats \`**\`, whatever the order in the file. Two routes that tie for a method are an error. What no route allows is
refused.

- A literal is written as it reads: RFC 3986 path characters, and percent-encoding only for what cannot stand in a path (\`%20\`,
  \`%C3%A9\`, \`%7B\`). Paths that no request may have (dot segments, \`//\`, \`/%20/\`, \`%2F\`, \`;\`) are errors.
- \`{x}\` is one whole, non-empty segment.
- \`/a/**\` is everything that begins with \`/a/\`: \`/a/b\`, \`/a/b/c\` and \`/a/\`, but not \`/a\`.
- Case and a trailing slash count: \`/a\`, \`/A\` and \`/a/\` are three paths.
- Methods count before paths: where the most specific path has no route for the method, the most specific one that has is taken.
- A request that uses what only an opt-out grants (\`encoded_slashes\`, \`path_parameters\`) never falls through to a less specific
  route that grants it.

Many routers ignore case, a trailing slash, a suffix such as \`.json\`, or dots at the end of a segment; most answer HEAD by what they do for
GET. Unless \`receiver\` says that the upstream's router does none of it, every request that such a router would take for one of
another route is looked up in the policy: if it reaches a route that lets somebody through whom
the first one refuses, the config is refused, naming both.

`;

/** The whole reference. */
export function configReference(): string {
  const { properties = {}, required = [] } = annotatedSchema();
  const sections = Object.entries(properties).map(([path, schema]) =>
    sectionText({ path, schema, isRequired: required.includes(path) }),
  );
  return `${introduction}${sections.join('\n')}`;
}

/** What stands for nothing where a config only calls, decides for a proxy, or belongs to an application. */
const requiredText = ' Required in a sidecar.';

function sectionText(section: Setting): string {
  const rows = childrenOf(section).flatMap(rowsOf);
  const head = `## \`${section.path}\`\n\n${section.schema.description ?? ''}${section.isRequired ? requiredText : ''}\n`;
  if (rows.length === 0) {
    const single = allowedText(section.schema);
    return single === '' || section.schema.type === 'null'
      ? head
      : `${head}\nAllowed: ${single}. Default: ${defaultText(section)}.\n`;
  }
  return `${head}\n| key | allowed | default | |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
}

function rowsOf(setting: Setting): readonly string[] {
  const { path, schema } = setting;
  const cells = [`\`${path}\``, allowedText(schema), defaultText(setting), schema.description ?? ''].map((cell) =>
    cell.replaceAll('|', '\\|'),
  );
  return [`| ${cells.join(' | ')} |`, ...childrenOf(setting).flatMap(rowsOf)];
}

/** The keys of a map, of each item of a list, or of each value of a map with free names. */
function childrenOf({ path, schema }: Setting): readonly Setting[] {
  const inner = schema.anyOf?.find((one) => one.properties !== undefined) ?? schema;
  if (inner.properties !== undefined) {
    return Object.entries(inner.properties).map(([key, child]) => ({
      path: `${path}.${key}`,
      schema: child,
      isRequired: inner.required?.includes(key) === true,
    }));
  }
  if (inner.items?.properties !== undefined) {
    return childrenOf({ path: `${path}[]`, schema: inner.items, isRequired: false });
  }
  if (typeof inner.additionalProperties === 'object') {
    return childrenOf({ path: `${path}.NAME`, schema: inner.additionalProperties, isRequired: false });
  }
  return [];
}

function allowedText(schema: JsonSchema): string {
  if (schema.allowed !== undefined) return schema.allowed;
  if (schema.properties !== undefined) return 'a map';
  const alternatives = schema.anyOf?.filter(({ type }) => type !== 'null').map(allowedText) ?? [];
  return alternatives.join(', ') || (schema.type === 'string' ? 'a text' : '');
}

function defaultText({ schema, isRequired }: Setting): string {
  if (isRequired) return '**required**';
  const standard = schema.default;
  if (standard === undefined || (typeof standard === 'object' && standard !== null && !Array.isArray(standard))) {
    return '';
  }
  return `\`${typeof standard === 'string' ? standard : JSON.stringify(standard)}\``;
}
