/** The section that says when an edit of the file counts. */
import { towards, whenLess } from '../schema/key-changes.js';
import { duration, map, word } from '../schema/scalars.js';
import { section } from '../schema/section.js';

const reloadSchema = map({
  least_age: duration('0ms', '1m')
    .prefault('2s')
    .describe(
      'How long an edited file has to stay as it is before it counts, also at SIGHUP; the config in force says it. A moved link need not wait.',
    ),
  end_marker: word('optional', 'required')
    .prefault('optional')
    .describe(
      '`required`: a config counts only if its last line is `...`, YAML’s end of a document, so that a file which was cut off is refused. Asked for ' +
        'where the config in force or the new one says so. Best put first in the file.',
    ),
});
export const reload = section({
  schema: reloadSchema
    .prefault({})
    .describe('When an edit of this file counts. See [operations.md](operations.md#changing-the-config).'),
  compile: (file) => ({
    reload: {
      /** Whether a file without the line that ends a whole one is refused. */
      endMarker: file.end_marker === 'required',
      /** For how long an edited file has to stay as it is. */
      leastAgeMs: file.least_age,
    },
  }),
  keys: {
    least_age: { of: ({ reload }) => reload.leastAgeMs, widens: whenLess },
    end_marker: {
      of: ({ reload }) => (reload.endMarker ? 'required' : 'optional'),
      widens: towards('required', 'optional'),
    },
  },
});
