/**
 * Stands in for tap in a test file that shares its process: everything is asked of the test that stands for the file
 * which runs now.
 */
import { current } from './files.mjs';

const t = new Proxy(
  {},
  {
    get(_, name) {
      const { scope } = current;
      const value = Reflect.get(scope, name, scope);
      return typeof value === 'function' ? value.bind(scope) : value;
    },
  },
);

export { t, t as default };
