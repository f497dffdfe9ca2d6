/** Receivers that take more to install. */
import { startGo } from '../../support/go.js';
import { railsProgram, startRails } from '../../support/rails.js';
import { goApp, railsControllers, railsRoutes } from './apps.js';
import type { RealReceiver } from './real-receiver.js';

export const largeReceivers: readonly RealReceiver[] = [
  { name: 'Rails on Puma', start: async (t, env) => startRails(t, railsProgram(railsRoutes, railsControllers), env) },
  { name: 'Go', start: async (t, env) => startGo(t, goApp, env) },
];
