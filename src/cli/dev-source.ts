import { fileSource, textSource, type ConfigSource } from '../app/config-source.js';
import { textDigest } from '../adapters/text-file.js';
import { accept } from '../decision/result.js';
import { composeDevConfig, type DevPlaces } from './dev-config.js';

/** The config of `dev` from a text of our own. */
export function builtInSource(routes: string, places: DevPlaces): ConfigSource {
  return textSource(composeDevConfig(routes, places), 'the config of dev');
}

/** The config of `dev` from a file of the user, which is composed anew whenever the file changes. */
export function composedSource(path: string, name: string, places: DevPlaces): ConfigSource {
  const file = fileSource(path, name);
  let digestOfFile = '';
  return {
    name,
    read: async () => {
      const text = await file.read();
      if (!text.ok) return text;
      digestOfFile = textDigest(text.value);
      return accept(composeDevConfig(text.value, places));
    },
    // The proxy knows the digest of the composed text only, so each change of the file is news to it.
    watch: (_digest, onChange) => file.watch(digestOfFile, () => { onChange(null); }),
  };
}
