import t from 'tap';
import { configText, problemsOf, withRoutes } from './inspection.js';

const sections = [
  {
    input: { identity: '{ assertion: { key_file: /k, audience: a } }' },
    expected: 'c.yaml:5:13: error: identity.assertion is not supported yet; allowed: null',
  },
];

t.test('what is not supported yet is refused in those words, and only once', t => {
  for (const { input, expected } of sections) t.same(problemsOf(configText(input)), [expected], expected);
  t.end();
});

t.test('what stands for none of it is accepted', t => {
  const keys = 'mode: enforce, accept: [service], session: null, websocket: false, idempotency: none';
  t.same(problemsOf(withRoutes([`${keys}, name: a, methods: [POST], path: /a, subjects: [s], permissions: [p]`],
    { sessions: 'null', mode: 'enforce', identity: '{ assertion: null }' })), []);
  t.end();
});

t.test('what never was a value is no value that is not supported yet', t => {
  t.match(problemsOf(configText({ mode: 'audit' })), [/error: mode is "audit"; allowed: enforce, shadow$/]);
  t.end();
});
