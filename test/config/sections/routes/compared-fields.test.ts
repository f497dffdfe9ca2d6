import t from 'tap';
import { errorsOf, withRoutes } from '../../inspection.js';

const store = { store: '{ redis: { url: "redis://127.0.0.1" } }' };
const who = 'subjects: [s], permissions: [p]';

const uncounted = [
  { field: 'X-User', identity: '{ headers: { subject: X-User } }', hint: '' },
  { field: 'x.user', identity: '{ headers: { kind: X-User } }', hint: '' },
  { field: 'X-Proof', identity: '{ assertion: { key_file: /k, audience: a, header: X-Proof } }', hint: '' },
  { field: 'x_tenant', hint: '; or listen.underscore_fields: allow' },
  { field: 'x_tenant', underscores: 'drop', hint: '; or listen.underscore_fields: allow' },
  { field: 'x_tenant', underscores: 'refuse', hint: '; or listen.underscore_fields: allow' },
  { field: 'x_tenant', underscores: 'allow', hint: null },
  { field: 'X-User', identity: '{ headers: { subject: X-Caller } }', hint: null },
];

t.test('a field that this config removes before it is compared is refused', (t) => {
  for (const { field, identity = '{}', underscores = null, hint } of uncounted) {
    const listen = `{ host: 127.0.0.1, port: 8080${underscores === null ? '' : `, underscore_fields: ${underscores}`} }`;
    const route = `name: a, path: /a, methods: [POST], ${who}, idempotency: { mode: required, fields: [${field}] }`;
    t.same(
      errorsOf(withRoutes([route], { ...store, listen, identity })).map((line) => line.split('idempotency.')[1]),
      hint === null
        ? []
        : [
            `fields[0] is "${field}", which is never passed on as it came; allowed: another header, such as If-Match${hint}`,
          ],
      `${field} ${identity} ${String(underscores)}`,
    );
  }
  t.end();
});
