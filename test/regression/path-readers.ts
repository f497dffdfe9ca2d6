/**
 * How others read a path: each makes of a request target what its routes, files or servlets are found by. `null` where
 * it refuses.
 */

export type PathReader = (target: string) => string | null;

const pathOf = (target: string): string => target.split('?', 1)[0] ?? '';

/** Takes `.`, `..` and empty segments away, as file systems and most servers do. */
function normalised(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

/** Bytes, whatever they are: invalid UTF-8 stops nobody who reads it as latin1. */
function decoded(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_escape, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

/**
 * A reader that takes more for a dot, a slash or a letter than there is: what fullwidth forms and overlong UTF-8 come
 * to.
 */
function folded(text: string): string {
  return text
    .replace(/\xc0\xae|\xef\xbc\x8e/g, '.')
    .replace(/\xc0\xaf|\xef\xbc\x8f|\xe2\x88\x95/g, '/')
    .normalize('NFKC');
}

/** What `parseurl` and, where there is a `#`, Node's `url.parse` make of it. */
function expressPath(target: string): string {
  const path = pathOf(target);
  return path.includes('#') ? (path.split('#', 1)[0]?.replaceAll('\\', '/') ?? '') : path;
}

export const pathReaders: Readonly<Record<string, PathReader>> = {
  'Express, its routes: split, then each segment decoded': (target) => {
    try {
      return expressPath(target).split('/').map(decodeURIComponent).join('/');
    } catch {
      return null;
    }
  },
  'Express, its files: decoded, slashes merged, dots taken away': (target) => normalised(decoded(expressPath(target))),
  'WSGI: PATH_INFO is decoded once': (target) => decoded(pathOf(target).replace(/^\/+/, '/')),
  'a WSGI program that takes dots and empty segments away': (target) => normalised(decoded(pathOf(target))),
  'CGI and PHP: decoded, a NUL ends it, backslashes are slashes': (target) =>
    normalised(decoded(pathOf(target)).split('\0', 1)[0]?.replaceAll('\\', '/') ?? ''),
  'Tomcat: parameters are dropped from each segment, then decoded': (target) =>
    normalised(
      decoded(
        pathOf(target)
          .split('/')
          .map((segment) => segment.replace(/;.*/, ''))
          .join('/'),
      ),
    ),
  'Tomcat the other way round: decoded, then parameters are dropped': (target) =>
    normalised(
      decoded(pathOf(target))
        .split('/')
        .map((segment) => segment.replace(/;.*/, ''))
        .join('/'),
    ),
  'nginx: decoded, slashes merged, dots taken away; a fragment ends it': (target) =>
    normalised(decoded(pathOf(target).split('#', 1)[0] ?? '')),
  'IIS: decoded twice, backslashes, dots and blanks at the end of a segment': (target) =>
    normalised(
      decoded(decoded(pathOf(target)))
        .replaceAll('\\', '/')
        .split('/')
        .map((segment) => segment.replace(/(?<=[^. ])[. ]+$/, ''))
        .join('/'),
    ).toLowerCase(),
  'WHATWG URL': (target) => {
    const url = URL.canParse(target, 'http://receiver.example') ? new URL(target, 'http://receiver.example') : null;
    return url === null ? null : url.pathname;
  },
  'a reader that folds what looks alike': (target) => normalised(folded(decoded(pathOf(target)))).toLowerCase(),
  'the last of several readings: decoded until nothing changes': (target) => {
    let path = pathOf(target);
    for (let next = decoded(path); next !== path; next = decoded(path)) path = next;
    return normalised(path.replaceAll('\\', '/').replace(/;[^/]*/g, ''));
  },
};
