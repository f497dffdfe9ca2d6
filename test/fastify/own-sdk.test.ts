/** An application that calls `SuperTokens.init` itself: the SDK keeps the first settings of a process. */
import t from 'tap';
import * as SuperTokens from 'supertokens-node';
import * as Session from 'supertokens-node/recipe/session';
import { rsaKey } from '../support/keys.js';
import { buildApp } from './open-app.js';

t.test("sessions do not start beside the application's own SDK, whose settings would count", async (t) => {
  SuperTokens.init({
    framework: 'fastify',
    telemetry: false,
    supertokens: { connectionURI: 'http://127.0.0.1:1' },
    appInfo: { appName: 'own', apiDomain: 'https://api.example.com', websiteDomain: 'https://api.example.com' },
    recipeList: [Session.init()],
  });
  for (const attempt of ['first', 'second']) {
    const app = await buildApp(t, rsaKey(), {
      config: {
        sessions: { core_url: 'http://127.0.0.1:1', api_domain: 'https://api.example.com' },
        routes: undefined,
      },
      routes: (app) => {
        const users = { accept: ['session' as const], session: { claims: { tId: 'public' } } };
        app.get('/me', { config: { sallyport: users } }, () => ({}));
      },
    });
    await t.rejects(
      Promise.resolve(app.ready()),
      { message: /sallyport: sessions .*SuperTokens\.init/ },
      `${attempt} attempt`,
    );
  }
});
