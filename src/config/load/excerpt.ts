/** Shows the line of a config that a problem is about, with a caret under the place. */
import { concealedIn, mask, type Range } from './redact.js';
import { escapeControls } from '../../lib/text.js';
import type { Position } from './source-tree.js';

/** Columns of the line that are shown. A terminal has 80, and the number of the line takes some. */
const maxWidth = 100;

/** Characters on both sides of the place that are looked at: a line of a megabyte is none for people. */
const reach = 200;

/** Columns before the caret that are kept where the line is cut. */
const contextWidth = 40;

const cut = '…';

/** Characters that take two columns of a terminal: East Asian wide ones (UAX #11), and emoji. */
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/;
const wideBeyond =
  /^(?:\p{Emoji_Presentation}|[\u{1b000}-\u{1b2ff}\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}])/u;

/** Characters that stand on the one before, or on nothing. */
const withoutWidth = /^[\p{Mn}\p{Me}\ufeff]$/u;

/** One character of the file as it is shown. */
interface Cell {
  /** Where it stands in the file, in UTF-16 units. */
  readonly at: number;
  readonly shown: string;
  readonly width: number;
}

/** Writes excerpts of one text: the line, and beneath it the caret; nothing where the line is blank. */
export function createExcerpts(
  text: string,
  mayShow: (key: string, value: string) => boolean,
): (position: Position) => readonly string[] {
  const starts = [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)];
  let concealed: readonly Range[] | null = null;
  return ({ line, column }) => {
    const start = starts[line - 1] ?? text.length;
    const end = lineEnd(text, (starts[line] ?? text.length + 1) - 1);
    if (text.slice(start, end).trim() === '') return [];
    concealed ??= mergeRanges(concealedIn(text, mayShow));
    const at = Math.min(start + column - 1, end);
    const window = { start: Math.max(start, at - reach), end: Math.min(end, at + reach) };
    const cells = cellsOf(text, window, rangesIn(concealed, window));
    const { shown, caret } = layOut(cells, at, { start, end, window });
    const gutter = String(line).padStart(4);
    return [`${gutter} | ${shown}`, `${' '.repeat(gutter.length)} | ${' '.repeat(caret)}^`];
  };
}

/** In their order, none touching another. */
function mergeRanges(ranges: readonly Range[]): readonly Range[] {
  const disjoint: Range[] = [];
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = disjoint.at(-1);
    if (last === undefined || range.start > last.end) disjoint.push(range);
    else if (range.end > last.end) disjoint.splice(-1, 1, { start: last.start, end: range.end });
  }
  return disjoint;
}

/** Those of merged ranges that have something of the window. */
function rangesIn(ranges: readonly Range[], window: Range): readonly Range[] {
  let [from, to] = [0, ranges.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((ranges[middle]?.end ?? 0) > window.start) to = middle;
    else from = middle + 1;
  }
  const found: Range[] = [];
  for (let index = from; index < ranges.length; index += 1) {
    const range = ranges[index];
    if (range === undefined || range.start >= window.end) break;
    found.push(range);
  }
  return found;
}

function lineEnd(text: string, newline: number): number {
  return text.charAt(newline - 1) === '\r' ? newline - 1 : newline;
}

function cellsOf(text: string, window: Range, concealed: readonly Range[]): readonly Cell[] {
  const cells: Cell[] = [];
  let at = window.start;
  let wasConcealed = false;
  for (const character of text.slice(window.start, window.end)) {
    const [place, isConcealed] = [at, concealed.some(({ start, end }) => at >= start && at < end)];
    if (isConcealed && !wasConcealed) cells.push({ at: place, shown: mask, width: mask.length });
    else if (!isConcealed) cells.push({ at: place, ...shownAs(character) });
    wasConcealed = isConcealed;
    at += character.length;
  }
  return cells;
}

function shownAs(character: string): Pick<Cell, 'shown' | 'width'> {
  if (withoutWidth.test(character)) return { shown: character === '\ufeff' ? '' : character, width: 0 };
  // How far a tab goes is the terminal's to say.
  const shown = character === '\t' ? '  ' : escapeControls(character);
  return {
    shown,
    width: shown === character && (wide.test(character) || wideBeyond.test(character)) ? 2 : shown.length,
  };
}

interface Line extends Range {
  /** The part of it that the cells are of. */
  readonly window: Range;
}

/** The cells around the caret that fit, and the columns before the caret. */
function layOut(cells: readonly Cell[], at: number, line: Line): { readonly shown: string; readonly caret: number } {
  const { window } = line;
  const found = cells.findIndex((_, index) => at < (cells[index + 1]?.at ?? window.end));
  const pointed = found < 0 ? cells.length : found;
  let [first, last] = [0, cells.length];
  const isCut = window.start > line.start || widthOf(cells) > maxWidth;
  while (isCut && first < pointed && widthOf(cells.slice(first, pointed)) > contextWidth) first += 1;
  while (last > pointed + 1 && widthOf(cells.slice(first, last)) > maxWidth) last -= 1;
  const before = window.start > line.start || first > 0 ? cut : '';
  const after = window.end < line.end || last < cells.length ? cut : '';
  return {
    shown: `${before}${cells
      .slice(first, last)
      .map(({ shown }) => shown)
      .join('')}${after}`.trimEnd(),
    caret: before.length + widthOf(cells.slice(first, pointed)),
  };
}

function widthOf(cells: readonly Cell[]): number {
  return cells.reduce((sum, { width }) => sum + width, 0);
}
