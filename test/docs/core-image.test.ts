/**
 * The image of the Core is pinned by digest (docs/specification.md 9): the pages say so, and nothing here shows it
 * otherwise.
 */
import t from 'tap';
import { projectFiles, readProjectFile } from '../support/source-files.js';

/** An image of the Core, by its maker's name or as these pages call it, with what pins it. */
const coreImage =
  /\b(?:[\w.:-]+\/)*(?:supertokens\/[\w-]+|REPOSITORY\/core)(?::[\w.-]+)?(?:@sha256:(?:[0-9a-f]{64}|…))?/g;

t.test('the image of the Core is pinned to a digest wherever it is named, and the pages ask for it', async (t) => {
  const pages = projectFiles().filter((path) =>
    /^(?:docs|helm)\/.*\.(?:md|ya?ml|tpl)$|^(?:README\.md|SECURITY\.md|Dockerfile)$/.test(path),
  );
  t.ok(pages.length > 30, 'the pages, the chart and the examples are looked at');
  const named = pages.flatMap((path) =>
    readProjectFile(path)
      .split('\n')
      .filter((line) => /image|docker/i.test(line))
      .flatMap((line) => [...line.matchAll(coreImage)].map(([image]) => ({ path, image }))),
  );
  t.ok(named.some(({ path }) => path === 'docs/releasing.md'));
  for (const { path, image } of named) t.match(image, /@sha256:/, `${path}: ${image}`);
  t.match(readProjectFile('docs/import.md'), /Pin the Core's image to the digest/);
  t.match(readProjectFile('docs/releasing.md'), /image of the Core is pinned the same way, by digest/);
});
