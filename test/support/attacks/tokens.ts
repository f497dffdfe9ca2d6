/** What a lenient reader takes for a signed token that it is not (RFC 7515 §3.1, RFC 4648 §3.5). */

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** The token in every spelling that only looks like it: each has to be refused. */
export function otherSpellings(token: string): readonly { readonly name: string; readonly token: string }[] {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const last = signature.slice(-1);
  return [
    // 256 bytes are 342 characters, and the last one has four bits to spare.
    ...Array.from(alphabet)
      .filter((letter) => letter !== last)
      .map((letter) => ({
        name: `the signature ends in ${letter}`,
        token: `${header}.${payload}.${signature.slice(0, -1)}${letter}`,
      })),
    ...[1, 2, 3, 40].map((cut) => ({ name: `cut by ${String(cut)}`, token: token.slice(0, -cut) })),
    { name: 'two parts', token: `${header}.${payload}` },
    { name: 'one part', token: header },
    { name: 'four parts', token: `${token}.${signature}` },
    { name: 'a dot more', token: `${token}.` },
    { name: 'a dot before', token: `.${token}` },
    { name: 'no payload', token: `${header}..${signature}` },
    { name: 'no header', token: `.${payload}.${signature}` },
    { name: 'no signature', token: `${header}.${payload}.` },
    { name: 'one dot', token: '.' },
    { name: 'two dots', token: '..' },
    { name: 'three dots', token: '...' },
    { name: 'a letter', token: 'x' },
    { name: 'thousands of parts', token: 'a.'.repeat(2000) },
    { name: 'a padded signature', token: `${token}=` },
    { name: 'a signature padded twice', token: `${token}==` },
    { name: 'a padded header', token: `${header}=.${payload}.${signature}` },
    { name: 'a padded payload', token: `${header}.${payload}=.${signature}` },
    { name: 'escaped padding', token: `${token}%3D` },
    { name: 'a letter more', token: `${token}A` },
    { name: 'four letters more', token: `${token}AAAA` },
    { name: 'base64', token: `${header}.${payload}.${signature.replaceAll('-', '+').replaceAll('_', '/')}+` },
    { name: 'padded base64', token: `${header}.${payload}.${signature.replaceAll('-', '+').replaceAll('_', '/')}=` },
    {
      name: 'one bit of the signature',
      token: `${header}.${payload}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
    },
    { name: 'a signature of zeros', token: `${header}.${payload}.${'A'.repeat(signature.length)}` },
    { name: 'a blank before', token: ` ${token}` },
    { name: 'a blank within', token: `${header}.${payload}. ${signature}` },
    { name: 'quoted', token: `"${token}"` },
    { name: 'a list', token: `${token},${token}` },
    { name: 'beyond ASCII', token: `${token}\xe9` },
  ];
}
