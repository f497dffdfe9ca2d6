/** `sallyport/fastify`: decides on the requests of an application in its own process. */
import type { FastifyPluginCallback, FastifyRequest } from 'fastify';
import { createMetrics } from '../adapters/metrics/metrics.js';
import { createRouteRegister } from './application-routes.js';
import { DecidedRequest } from './decided-request.js';
import { openApplication, type OpenApplication } from './open-application.js';
import type { RequestPrincipal, RoutePolicy, SallyportOptions, SallyportState } from './options.js';

/**
 * Puts the decision before everything that the application's routes do, in the scope that it is registered in and those
 * below. `ready` and `listen` reject with all that is wrong with config and routes; until then, and where that failed,
 * no request gets through.
 */
const plugin: FastifyPluginCallback<SallyportOptions> = (app, options, done) => {
  if ('http2' in app.initialConfig && app.initialConfig.http2) {
    done(new Error('sallyport: applications of HTTP/2 are not decided on in their own process; allowed: HTTP/1.1'));
    return;
  }
  let opened: OpenApplication | null = null;
  const inForce = (): OpenApplication => {
    if (opened === null) throw new Error('sallyport: the application is not ready');
    return opened;
  };
  const metrics = createMetrics(options.registry ?? null);
  const routes = createRouteRegister(app);
  app.decorateRequest('principal', null);
  app.decorate('sallyport', {
    readiness: () => inForce().readiness(),
    metrics: metrics.expose,
    reload: () => inForce().reload(),
  });
  app.addHook('onRoute', routes.add);
  const decided = new WeakMap<FastifyRequest, DecidedRequest>();
  app.addHook('onRequest', (request, reply, next) => {
    const deciding = new DecidedRequest(inForce().parts, request, reply, next);
    decided.set(request, deciding);
    deciding.decide();
  });
  app.addHook('preHandler', (request, _reply, next) => {
    const found = decided.get(request);
    if (found === undefined) throw new Error('sallyport: the request was not decided on');
    found.onHandler(next);
  });
  app.addHook('onSend', (request, _reply, _payload, next) => {
    decided.get(request)?.onSend();
    next();
  });
  app.addHook('onReady', async () => {
    const result = await openApplication(app, routes, metrics, options);
    if (!result.ok) throw new Error(`sallyport: ${result.error.messages.join('\n')}`);
    opened = result.value;
  });
  app.addHook('preClose', async () => opened?.drain());
  app.addHook('onClose', async () => opened?.close());
  done();
};

/** As @fastify/* plugins: its hooks hold where it is registered, and not in a scope of its own. */
export const sallyport = Object.assign(plugin, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'sallyport',
  [Symbol.for('plugin-meta')]: { name: 'sallyport', fastify: '5.x' },
});

// `require` returns the function itself: its other names are found on it.
Object.assign(sallyport, { default: sallyport, sallyport });

export type { RequestPrincipal, RoutePolicy, SallyportOptions, SallyportState };
export { sallyport as default, sallyport as 'module.exports' };
