/** The measurement of start and rest still works, and the program that the image runs starts. */
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { measureStarts, startTable } from './startup.js';

t.test('each program is started, and its memory at rest read', async (t) => {
  const measured = await measureStarts(t, { starts: 1, restS: 0, before: projectDir });
  t.same(
    measured.map(({ name }) => name),
    ['node:http', 'Sallyport, from npm', 'Sallyport, before', 'Sallyport, bundled as in the image'],
  );
  for (const { name, readyMs, restMib } of measured) t.ok(readyMs > 0 && restMib > 10, name);
  t.match(startTable(measured), /^\| program \|.*\n.*\n\| node:http \| \d+ \| \d+ \|/);
});
