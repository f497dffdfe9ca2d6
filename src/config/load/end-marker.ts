import type { ParsedConfig } from './parse-sections.js';
import type { Report } from './report.js';
import type { SourceNode } from './source-tree.js';

/** The end of a document in YAML: no text of a config can hold it as a line of its own. */
const marker = '...';

interface EndMarkerInput {
  /** Who asks for the marker besides the config itself, or `null`. */
  readonly asking: string | null;
  /** What the text says, as far as it could be read. */
  readonly root: SourceNode | null;
  readonly parts: Pick<ParsedConfig, 'reload'> | null;
}

/** Refuses a config that may have been cut off, where the marker at its end is asked for. */
export function checkEndMarker(text: string, { asking, root, parts }: EndMarkerInput, report: Report): void {
  const own = parts?.reload?.value.end_marker === 'required' ? 'reload.end_marker' : null;
  const by = asking ?? own;
  if (own !== null && root?.kind === 'map' && [...root.entries.keys()][0] !== 'reload') {
    const message =
      'reload.end_marker is required, and does not stand first: a file that is cut off before it does not ask for the marker';
    report.note(['reload', 'end_marker'], message);
  }
  const lines = text.trimEnd().split(/\r?\n/);
  if (by === null || lines.at(-1) === marker) return;
  const message = `the config does not end with a line ${marker}, so it may not be whole; ${by} asks for it`;
  report.errorAt({ line: lines.length, column: 1 }, message, `${marker} as the last line`);
}
