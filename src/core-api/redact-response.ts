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
 * 200 characters, none of the secrets that the call carried and no password hash, whosever it is. Where a piece of one
 * is left, wrapped, escaped or encoded, nothing of the answer is shown.
 */
export function readableResponse(body: string, secrets: readonly string[]): string {
  const shown = withoutMarkup(body)
    .slice(0, maxRead)
    .replace(/&(?:lt|gt|quot|#39|amp|nbsp);/g, (entity) => entities[entity] ?? entity);
  let text = hideHashes(hide(shown, secrets)).replace(token, '[token]');
  text = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\s]+/gu, ' ').trim();
  if (hasHash(text)) return notShown;
  const characters = Array.from(text);
  if (characters.length > maxShown) text = `${characters.slice(0, maxShown).join('')} …`;
  return repeatsSecret(text, secrets) ? notShown : text;
}

/** A word from the beginning of a password hash on, in the formats of docs/import.md. */
const hashWord = /\$(?:2[a-z]?\$\d\d|argon2[a-z]{1,2}|f_scrypt)\$[^\s"'<>]{8,}/gi;

const bcryptHash = /^(\$2[a-z]?\$\d\d\$[./A-Za-z0-9]{53})(?![./A-Za-z0-9\\])/i;

/**
 * Replaces whole hashes. Only those of bcrypt tell where they end; the others may go on behind a blank, where somebody
 * broke the line.
 */
function hideHashes(text: string): string {
  return text.replace(hashWord, (word, offset: number) => {
    if (word.startsWith('$2')) return word.replace(bcryptHash, '[hash]');
    return /\s/.test(text.charAt(offset + word.length)) ? word : '[hash]';
  });
}

/** Whether some of a hash is left, wrapped or escaped: its identifier, and what is no word of a sentence behind it. */
function hasHash(text: string): boolean {
  const bare = unescaped(text).replace(/[\s\\]/g, '');
  return /\$(?:2[a-z]?\$\d\d\$[./A-Za-z0-9]|argon2[a-z]{1,2}\$[vm]=|f_scrypt\$[A-Za-z0-9+/]{16})/i.test(bare);
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

const notShown = '[not shown, since it repeats a piece of a secret]';

/** Letters and digits of a secret in a row that may not be shown. */
const pieceLength = 8;

/** Whether a piece of a secret stands in a text: wrapped, in another case, escaped or encoded as below. */
function repeatsSecret(text: string, secrets: readonly string[]): boolean {
  const seen = [text, unescaped(text)].map(lettersOf);
  return secrets
    .flatMap(encodings)
    .map(lettersOf)
    .some((form) => {
      for (let from = 0; from + pieceLength <= form.length; from += 1) {
        const piece = form.slice(from, from + pieceLength);
        if (seen.some((each) => each.includes(piece))) return true;
      }
      return false;
    });
}

/** Without what can stand between two letters, as a break of the line does; the case may have been changed, too. */
function lettersOf(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Escapes of HTML, JSON, JavaScript and URLs. */
function unescaped(text: string): string {
  return text.replace(
    /&#(?:(\d{1,7})|x([\da-f]{1,6}));?|\\u([\da-f]{4})|\\x([\da-f]{2})|%([\da-f]{2})/gi,
    (_escape, decimal?: string, ...hex: readonly (string | undefined)[]) => {
      const code = decimal === undefined ? Number.parseInt(hex.slice(0, 4).join(''), 16) : Number(decimal);
      return code < 0x80 ? String.fromCharCode(code) : ' ';
    },
  );
}

/** A secret itself, in hexadecimal digits, and in Base64 wherever it begins in a group of three bytes. */
function encodings(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      // What the bytes beside it have a share in.
      .slice(offset === 0 ? 0 : 4, -4),
  );
  return [secret, bytes.toString('hex'), ...base64];
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
