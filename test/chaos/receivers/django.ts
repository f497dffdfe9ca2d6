import { startGunicorn } from '../../support/python-web.js';
import { djangoApp } from './apps.js';
import type { RealReceiver } from './real-receiver.js';

export const djangoOnGunicorn: RealReceiver = {
  name: 'Django on gunicorn',
  start: async (t, env) => startGunicorn(t, djangoApp, env),
};
