import t from 'tap';
import { tools, type ToolName } from '../../src/cli/tools.js';
import { captureIo } from './captured-io.js';

t.test('each tool loads the command of its name', async (t) => {
  const names = Object.keys(tools) as ToolName[];
  t.same(names.sort(), ['core', 'dev', 'import']);
  for (const name of names) {
    const create = await tools[name]?.();
    t.equal(create?.(captureIo()).name(), name);
  }
});
