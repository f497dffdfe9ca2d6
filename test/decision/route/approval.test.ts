import t from 'tap';
import { approvesSubject, prefixWords, sampleSubjects, subjectWords } from '../../../src/decision/route/approval.js';
import { approval } from '../samples.js';

t.test('whom an approval names', (t) => {
  const named = approval(['checkout'], [], ['jobs/', 'spiffe://shop.example/ns/orders/']);
  const rows = [
    { subject: 'checkout', expected: true },
    { subject: 'checkout/', expected: false },
    { subject: 'jobs/nightly', expected: true },
    { subject: 'jobs', expected: false },
    { subject: 'jobs-2/nightly', expected: false },
    { subject: 'spiffe://shop.example/ns/orders/sa/api', expected: true },
    { subject: 'spiffe://shop.example/ns/orders-test/sa/api', expected: false },
  ];
  for (const { subject, expected } of rows) t.equal(approvesSubject(named, subject), expected, subject);
  t.end();
});

t.test('samples and words of what it names', (t) => {
  const named = approval(['checkout', 'jobs/example'], [], ['jobs/', 'runs/']);
  t.same(sampleSubjects(named), ['checkout', 'jobs/example', 'jobs/examplex', 'runs/example']);
  t.same(sampleSubjects(named, new Set(['jobs/examplex', 'runs/example'])).slice(2), [
    'jobs/examplexx',
    'runs/examplex',
  ]);
  t.ok(sampleSubjects(named).every((subject) => approvesSubject(named, subject)));
  t.same(subjectWords(named), ['checkout', 'jobs/example', 'jobs/…', 'runs/…']);
  t.equal(prefixWords('jobs/'), 'jobs/…');
  t.end();
});
