import t from 'tap';
import { tools as noTools } from '../../src/cli/no-tools.js';
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

t.test("what stands in their place in the proxy's bundle has none of them", (t) => {
  t.same(noTools, {});
  t.end();
});
