/** Receivers that take more to install. */
import { startGo } from '../../support/go.js';
import { startRails } from '../../support/rails.js';
import { goApp, railsApp } from './apps.js';
import type { RealReceiver } from './real-receiver.js';

export const largeReceivers: readonly RealReceiver[] = [
  { name: 'Rails on Puma', start: async (t, env) => startRails(t, railsApp, env) },
  { name: 'Go', start: async (t, env) => startGo(t, goApp, env) },
];
