/** How much of a response's text is shown: the Core's own errors have one line. */
const maxShown = 200;

/** How much of its text is looked at, for something that can be shown. */
const maxRead = 16 * 1024;

const entities: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
  '&nbsp;': ' ',
};

/** What has the form of a token, in a response that should hold none. */
const token = /eyJ[\w-]{8,}(?:\.[\w-]*){0,2}/g;

/**
 * Makes one readable line of what the Core or something in front of it answered: text out of HTML, no controls, at most
 * 200 characters, and none of the secrets that the call carried.
 */
export function readableResponse(body: string, secrets: readonly string[]): string {
  const shown = withoutMarkup(body)
    .slice(0, maxRead)
    .replace(/&(?:lt|gt|quot|#39|amp|nbsp);/g, (entity) => entities[entity] ?? entity);
  let text = hide(shown, secrets).replace(token, '[token]');
  text = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\s]+/gu, ' ').trim();
  const characters = Array.from(text);
  return characters.length > maxShown ? `${characters.slice(0, maxShown).join('')} …` : text;
}

/** Elements whose text is not for people. */
const unreadable: ReadonlySet<string> = new Set(['script', 'style', 'head']);

/** In one pass, whatever the markup: a response of the largest size must not keep the process busy. */
function withoutMarkup(body: string): string {
  const pieces: string[] = [];
  let skipped: string | null = null;
  let from = 0;
  for (const tag of body.matchAll(/<([^<>]*)>/g)) {
    if (skipped === null) pieces.push(body.slice(from, tag.index));
    from = tag.index + tag[0].length;
    const [, slash, name = ''] = /^(\/?)([a-z]{1,10})\b/i.exec(tag[1] ?? '') ?? [];
    const element = name.toLowerCase();
    // A page may leave out the end of its head.
    if (skipped === element || (skipped === 'head' && element === 'body')) {
      skipped = slash === '/' || element === 'body' ? null : skipped;
    } else if (skipped === null && slash === '' && unreadable.has(element)) skipped = element;
  }
  if (skipped === null) pieces.push(body.slice(from));
  return pieces.join(' ');
}

/** Replaces each secret: as it is, as a URL or JSON would write it, and its beginning where somebody cut it short. */
export function hide(text: string, secrets: readonly string[]): string {
  let hidden = text;
  for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
    if (secret.length < minSecretLength) continue;
    for (const spelling of spellings(secret)) hidden = hidden.replaceAll(spelling, mark);
    for (let length = secret.length - 1; length >= minBeginningLength; length -= 1) {
      hidden = hidden.replaceAll(secret.slice(0, length), mark);
    }
  }
  return hidden;
}

/** Shorter ones would blacken ordinary words. */
const minSecretLength = 6;
const minBeginningLength = 10;

const mark = '[hidden]';

/** The Core's JSON library writes `=`, `<`, `>` and `&` as escapes. */
function spellings(secret: string): readonly string[] {
  const escaped = secret.replace(/[=<>&']/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
  return [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), escaped];
}
