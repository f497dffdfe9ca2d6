import t from 'tap';
import { isOwnHost } from '../../src/admin/host-check.js';

const cases: readonly { name: string; field: string; configured?: string; local?: string; expected: boolean }[] = [
  { name: 'loopback address with port', field: '127.0.0.1:9901', expected: true },
  { name: 'loopback address without port', field: '127.0.0.1', expected: true },
  { name: 'another loopback address', field: '127.1.2.3:9901', expected: true },
  { name: 'localhost, in any case', field: 'LocalHost:9901', expected: true },
  { name: 'a forwarded port', field: 'localhost:45123', expected: true },
  { name: 'IPv6 loopback', field: '[::1]:9901', expected: true },
  { name: 'the configured host', field: 'Admin.internal:9901', configured: 'admin.INTERNAL', expected: true },
  {
    name: 'the address that was connected to',
    field: '10.0.0.7:9901',
    configured: '0.0.0.0',
    local: '10.0.0.7',
    expected: true,
  },
  {
    name: 'the same on a dual-stack socket',
    field: '10.0.0.7:9901',
    configured: '::',
    local: '::ffff:10.0.0.7',
    expected: true,
  },
  { name: 'another address', field: '10.0.0.8:9901', configured: '0.0.0.0', local: '10.0.0.7', expected: false },
  { name: 'a rebound name', field: 'evil.example:9901', expected: false },
  { name: 'a name below localhost', field: 'localhost.evil.example', expected: false },
  { name: 'a name that starts like loopback', field: '127.0.0.1.evil.example', expected: false },
  { name: 'no name', field: '', expected: false },
  { name: 'user information', field: 'localhost@evil.example', expected: false },
  { name: 'two names', field: 'localhost, evil.example', expected: false },
  { name: 'an empty port', field: 'localhost:', expected: false },
  { name: 'loopback as a number', field: '2130706433', expected: false },
];

for (const { name, field, configured = '127.0.0.1', local = '127.0.0.1', expected } of cases) {
  t.equal(isOwnHost(field, configured, local), expected, `Host is checked: ${name}`);
}
