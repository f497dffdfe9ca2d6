/** The page, and the files that are put into it. */

export interface GivenFile {
  readonly name: string;
  readonly text: string;
}

/** What the page begins with; without a config, an example. */
export interface GivenFiles {
  readonly config: GivenFile | null;
  readonly tests: GivenFile | null;
}

/** Where the files stand in it. */
const place = (data: string): string => `<script type="application/json" id="files">${data}</script>`;

/** By this a page is known: it stands near its beginning. */
const title = '<title>Sallyport playground</title>';
const headLength = 2_048;

/** Puts the files into the page, as data: no text in them ends the element that they stand in. */
export async function pageWith(files: GivenFiles): Promise<string> {
  const { html } = await import('../../../built/playground.js');
  return html.replace(place('{}'), () => place(JSON.stringify(files).replaceAll('<', '\\u003c')));
}

export function isPage(text: string): boolean {
  return text.slice(0, headLength).includes(title);
}
