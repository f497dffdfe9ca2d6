import { readClientCredentials } from '../../adapters/oauth/client-credentials.js';
import type { CompiledConfig } from '../../config/types.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';
import { readAssertionFile, type AssertionFile } from '../keys/assertion-keys.js';
import { readTargetCertificates, type TargetCertificates } from '../certificates/target-certificates.js';
import { loadConfig, type ConfigReading, type ReadSource } from './read-config.js';
import { tellReads, type AskedFile, type AskedFiles, type FileSnapshot, type OnFile } from './file-snapshot.js';
import { readAuthorities } from './named-files.js';
import { startFailure, type StartFailure } from '../start-failure.js';

/** A config with the files it names, all of them good. */
export interface CompleteConfig {
  readonly config: CompiledConfig;
  /** PEM text of the upstream's authorities, or `null` for the system's. */
  readonly upstreamCa: string | null;
  /** PEM texts of the authorities of targets, by the paths of their files. */
  readonly targetAuthorities: ReadonlyMap<string, string>;
  /** What targets are shown. */
  readonly targetCertificates: TargetCertificates;
  /** Keys that assertions are signed with; `null` where there are none. */
  readonly assertion: AssertionFile | null;
  /** Files that count with the config alone, and are read again with it: path to digest. */
  readonly digests: ReadonlyMap<string, string>;
  /** All files that were read for it. */
  readonly asked: AskedFiles;
  /** What all of it was made of, so that it can be made once more. */
  readonly texts: ConfigTexts;
}

/** The text of a config, and those of the files that were read with it. */
export interface ConfigTexts {
  readonly config: string;
  readonly files: FileSnapshot;
}

/** Why a config is refused, with the files that were asked for until then: one that becomes good may mend it. */
interface RefusedConfig extends StartFailure {
  readonly asked: AskedFiles;
}

/** Reads a config and the authorities it names; whatever is wrong refuses all of it. */
export async function loadComplete(
  source: ReadSource,
  reading: ConfigReading,
  allFiles: Files,
): Promise<Result<CompleteConfig, RefusedConfig>> {
  const texts = new Map<string, string>();
  const asked = new Map<string, AskedFile>();
  const onFile: OnFile = (path, text, maxBytes) => {
    if (text.ok) texts.set(path, text.value);
    asked.set(path, { digest: text.ok ? accept(allFiles.digest(text.value)) : text, maxBytes });
  };
  const loaded = await loadWith(source, { ...reading, onFile }, tellReads(allFiles, onFile), texts);
  return loaded.ok ? accept({ ...loaded.value, asked }) : refuse({ ...loaded.error, asked });
}

async function loadWith(
  source: ReadSource,
  reading: ConfigReading & { readonly onFile: OnFile },
  files: Files,
  texts: FileSnapshot,
): Promise<Result<Omit<CompleteConfig, 'asked'>, StartFailure>> {
  const digests = new Map<string, string>();
  const note = (path: string, text: string): void => {
    digests.set(path, files.digest(text));
  };
  const onFile: OnFile = (path, text, maxBytes) => {
    reading.onFile(path, text, maxBytes);
    if (text.ok) note(path, text.value);
  };
  let configText = '';
  const read: ReadSource['read'] = async () => {
    const text = await source.read();
    if (text.ok) configText = text.value;
    return text;
  };
  const loaded = await loadConfig({ ...source, read }, { ...reading, onFile });
  if (!loaded.ok) return loaded;
  const { upstream, issuers } = loaded.value;
  for (const { keys } of issuers) {
    // Read again for every fetch; looked at here so that a wrong one is found now and not with the first rotation.
    const checked = keys.caFile === null ? null : await readAuthorities(keys.caFile, files);
    if (checked?.ok === false) return checked;
  }
  for (const { introspection } of issuers) {
    // Read again by what asks the issuer; here, so that a wrong one refuses the config.
    const checked = introspection === null ? null : await readClientCredentials(introspection, files);
    if (checked?.ok === false) return refuse(startFailure('invalid', checked.error));
  }
  const upstreamCa = upstream.caFile === null ? null : await readAuthorities(upstream.caFile, files);
  if (upstreamCa?.ok === false) return upstreamCa;
  if (upstream.caFile !== null && upstreamCa !== null) note(upstream.caFile, upstreamCa.value);
  const targetAuthorities = new Map<string, string>();
  for (const { upstream: target } of loaded.value.egress?.targets ?? []) {
    if (target.caFile === null || targetAuthorities.has(target.caFile)) continue;
    const text = await readAuthorities(target.caFile, files);
    if (!text.ok) return text;
    note(target.caFile, text.value);
    targetAuthorities.set(target.caFile, text.value);
  }
  const targetCertificates = await readTargetCertificates(loaded.value.egress?.targets ?? [], files);
  if (!targetCertificates.ok) return targetCertificates;
  const assertion = loaded.value.assertion === null ? null : await readAssertionFile(loaded.value.assertion, files);
  if (assertion?.ok === false) return assertion;
  return accept({
    config: loaded.value,
    upstreamCa: upstreamCa?.value ?? null,
    targetAuthorities,
    targetCertificates: targetCertificates.value,
    assertion: assertion?.value ?? null,
    digests,
    texts: { config: configText, files: texts },
  });
}
