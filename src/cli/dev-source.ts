import { fileSource, textSource, type ConfigSource } from '../app/config-source.js';
import { accept } from '../decision/result.js';
import { composeDevConfig, type DevPlaces } from './dev-config.js';

/** The config of `dev` from a text of our own. */
export function builtInSource(routes: string, places: DevPlaces): ConfigSource {
  return textSource(composeDevConfig(routes, places), 'the config of dev');
}

/** The config of `dev` from a file of the user, which is composed anew whenever the file changes. */
export function composedSource(path: string, name: string, places: DevPlaces): ConfigSource {
  const file = fileSource(path, name);
  return {
    name,
    read: async () => {
      const text = await file.read();
      return text.ok ? accept(composeDevConfig(text.value, places)) : text;
    },
    watch: file.watch,
  };
}
