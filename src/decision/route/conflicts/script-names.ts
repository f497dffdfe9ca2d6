/** Endings of files that servers run, and to which CGI, FastCGI, PHP, IIS and Apache hand what follows in the path. */
const endings: ReadonlySet<string> = new Set(
  [
    'php php3 php4 php5 php6 php7 php8 phtml phar',
    'cgi fcgi fpl pl py pyc rb sh tcl lua wsgi psgi',
    'asp aspx ashx asmx axd svc cshtml vbhtml cer dll exe bat cmd',
    'jsp jspx cfm cfml cfc',
    'shtml shtm stm',
  ].flatMap((line) => line.split(' ')),
);

/**
 * Whether a path names a script: by its ending, or because it is in a folder of programs. Its segments are folded; a
 * parameter is `null`, and names none: it would be every other thing as well.
 */
export function isScript(segments: readonly (string | null)[]): boolean {
  const name = segments.at(-1) ?? '';
  return name !== '' && (hasScriptEnding(name) || segments.slice(0, -1).includes('cgi-bin'));
}

/** Whether a segment ends as the names of scripts do. */
export function hasScriptEnding(name: string): boolean {
  const dot = name.lastIndexOf('.');
  return dot > 0 && endings.has(name.slice(dot + 1).toLowerCase());
}
