import t from 'tap';
import { prefersOpenMetrics } from '../../../src/decision/telemetry/metrics-format.js';

const rows: readonly { readonly name: string; readonly accept: string | undefined; readonly expected: boolean }[] = [
  { name: 'nothing is said', accept: undefined, expected: false },
  { name: 'nothing is taken', accept: '', expected: false },
  { name: 'anything', accept: '*/*', expected: false },
  { name: 'a browser', accept: 'text/html,application/xhtml+xml,*/*;q=0.8', expected: false },
  { name: 'by its name', accept: 'application/openmetrics-text', expected: true },
  { name: 'by its name in other letters', accept: 'Application/OpenMetrics-Text; Version=1.0.0', expected: true },
  { name: 'its version in quotes', accept: 'application/openmetrics-text; version="1.0.0"', expected: true },
  { name: 'an older version', accept: 'application/openmetrics-text; version=0.0.1', expected: false },
  { name: 'beside text', accept: 'text/plain, application/openmetrics-text', expected: true },
  { name: 'less than text', accept: 'text/plain, application/openmetrics-text;q=0.9', expected: false },
  { name: 'less than any text', accept: 'text/*;q=0.5, application/openmetrics-text;q=0.4', expected: false },
  { name: 'less than anything', accept: '*/*;q=0.5, application/openmetrics-text;q=0.4', expected: false },
  { name: 'more than text', accept: 'text/plain;q=0.1, */*, application/openmetrics-text;q=0.4', expected: true },
  { name: 'refused', accept: 'application/openmetrics-text;q=0', expected: false },
  { name: 'a quality that is none', accept: 'application/openmetrics-text;q=2', expected: false },
  {
    name: 'Prometheus 2',
    accept:
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    expected: true,
  },
  {
    name: 'Prometheus 3',
    accept:
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
    expected: true,
  },
  {
    name: 'Prometheus that is told to take text first',
    accept: 'text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2',
    expected: false,
  },
];

for (const { name, accept, expected } of rows) {
  t.test(name, (t) => {
    t.equal(prefersOpenMetrics(accept), expected);
    t.end();
  });
}
