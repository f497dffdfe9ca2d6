/** Real routers with two routes, `/orders/desk` and `/orders/{id}`, written as their users write them. */
import { createServer } from 'node:http';
import express from 'express';
import fastify from 'fastify';
import { listen } from '../support/listening.js';
import { startGunicorn } from '../support/python-web.js';
import type { Scope } from '../support/scope.js';

/** What a router may ignore, by the setting of `receiver` that tells of it. */
export type Fold = 'case_sensitive' | 'strict_slash' | 'format_suffix' | 'trailing_dots' | 'head_as_get' | 'path_info';

export interface Router {
  readonly name: string;
  /** Folds that it was seen to make of these spellings. */
  readonly folds: readonly Fold[];
  /** Returns the port. */
  readonly start: (t: Scope) => Promise<number>;
}

const django = `
from django.conf import settings
settings.configure(SECRET_KEY='none', ROOT_URLCONF=__name__, ALLOWED_HOSTS=['*'], LOGGING_CONFIG=None,
                   MIDDLEWARE=['django.middleware.common.CommonMiddleware'])
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import PATHS

def desk(request):
    response = HttpResponse('desk')
    response['X-Ran'] = 'desk'
    return response

urlpatterns = [ROUTES]
application = get_wsgi_application()
`;

// Functions: `$'` of a regular expression would mean something in a text.
const djangoWith = (functions: string, routes: readonly string[]): string =>
  django.replace('PATHS', () => functions).replace('ROUTES', () => routes.join(', '));
const order = 'lambda request, id: HttpResponse("order")';

const flask = `
from flask import Flask, Response
application = Flask(__name__)

@application.get('/orders/desk')
def desk():
    return Response('desk', headers={'X-Ran': 'desk'})

@application.get('/orders/<id>')
def order(id):
    return 'order'
`;

export const routers: readonly Router[] = [
  {
    name: 'Django, paths',
    folds: ['head_as_get'],
    start: async (t) =>
      startGunicorn(t, djangoWith('path', ["path('orders/desk', desk)", `path('orders/<str:id>', ${order})`]), {}),
  },
  {
    name: 'Django, regular expressions with an optional slash',
    folds: ['strict_slash', 'head_as_get'],
    start: async (t) =>
      startGunicorn(
        t,
        djangoWith('re_path', ["re_path(r'^orders/desk/?$', desk)", `re_path(r'^orders/([^/]+)/?$', ${order})`]),
        {},
      ),
  },
  { name: 'Flask', folds: ['head_as_get'], start: async (t) => startGunicorn(t, flask, {}) },
  { name: 'Express', folds: ['case_sensitive', 'strict_slash', 'head_as_get'], start: startExpress },
  { name: 'Fastify', folds: ['head_as_get'], start: async (t) => startFastify(t, false) },
  {
    name: 'Fastify, ignoring case and slashes',
    folds: ['case_sensitive', 'strict_slash', 'head_as_get'],
    start: async (t) => startFastify(t, true),
  },
];

async function startExpress(t: Scope): Promise<number> {
  const app = express();
  app.get('/orders/desk', (_request, response) => void response.set('X-Ran', 'desk').send('desk'));
  app.get('/orders/:id', (_request, response) => void response.send('order'));
  return (await listen(t, createServer(app))).port;
}

async function startFastify(t: Scope, lax: boolean): Promise<number> {
  const app = fastify({
    routerOptions: { caseSensitive: !lax, ignoreTrailingSlash: lax, ignoreDuplicateSlashes: lax },
  });
  app.get('/orders/desk', async (_request, reply) => reply.header('X-Ran', 'desk').send('desk'));
  app.get('/orders/:id', async () => 'order');
  await app.ready();
  return (await listen(t, app.server)).port;
}
