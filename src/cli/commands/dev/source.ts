import { changedSource, textSource, type ConfigSource } from '../../../app/config/config-source.js';
import { accept } from '../../../lib/result.js';
import { composeDevConfig, type DevPlaces } from './config.js';

/** The config of `dev` from routes of our own. */
export function builtInSource(routes: string, places: DevPlaces): ConfigSource {
  return textSource(composeDevConfig(routes, places), 'the config of dev');
}

/** The config of `dev` from one of the user, which is composed anew whenever that changes. */
export function composedSource(source: ConfigSource, places: DevPlaces): ConfigSource {
  return changedSource(source, (text) => (text.ok ? accept(composeDevConfig(text.value, places)) : text));
}
