import t from 'tap';
import { checkSessions } from '../../../../src/cli/commands/doctor/sessions.js';
import type { SessionSettings } from '../../../../src/config/types.js';
import { rsaKey } from '../../../support/keys.js';
import { startSessionCore } from '../../../support/session-core.js';
import { compiled, withRoutes } from '../../../config/inspection.js';

function settings(coreUrl: string): SessionSettings | null {
  const route = 'name: a, methods: [GET], path: /a, accept: [session], session: { claims: {} }';
  return compiled(withRoutes([route], { sessions: `{ core_url: "${coreUrl}", api_domain: "https://a.example" }` }))
    .sessions;
}

t.test('the doctor looks at what sessions need', async (t) => {
  const core = await startSessionCore(t, { keys: [rsaKey('d-1'), { ...rsaKey('d-1').jwk, kid: 's-1' }] });
  t.match(await checkSessions(settings(core.url)), [
    { level: 'ok', subject: 'sessions', what: 'the SDK is installed' },
    { level: 'ok', subject: 'keys sessions', what: 'accepted: d-1; not accepted: s-1' },
    { level: 'ok', subject: 'clock sessions' },
  ]);
  await core.close();
  t.match(await checkSessions(settings(core.url)), [
    { level: 'ok' },
    { level: 'problem', subject: 'keys sessions', outOfReach: true },
  ]);
  t.match(await checkSessions(settings('http://127.0.0.1:1')), [
    { level: 'problem', what: /other settings/ },
    { level: 'problem' },
  ]);
  t.same(await checkSessions(null), []);
});
