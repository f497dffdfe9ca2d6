/** What one would write oneself: read the file, call the Core for one user after the other, remember nothing. */
import { readFileSync } from 'node:fs';

interface Row {
  readonly email?: string;
  readonly passwordHash?: string;
  readonly passwordless?: { readonly email?: string; readonly phoneNumber?: string; readonly add?: string };
  readonly thirdParty?: {
    readonly thirdPartyId: string;
    readonly thirdPartyUserId: string;
    readonly email: string;
    readonly isVerified: boolean;
  };
  readonly methods?: readonly Row[];
}

const [file = '', url = ''] = process.argv.slice(2);
const headers = {
  'content-type': 'application/json; charset=utf-8',
  'api-key': 'a-key-for-tests-0123456789',
  'cdi-version': '2.16',
};

async function call(path: string, body: object, method = 'POST'): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { ...headers, rid: 'passwordless' },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}

async function importRow({ methods, passwordless, thirdParty, ...password }: Row): Promise<void> {
  if (methods !== undefined) for (const row of methods) await importRow(row);
  else if (thirdParty !== undefined) {
    await call('/recipe/signinup', {
      ...thirdParty,
      email: { id: thirdParty.email, isVerified: thirdParty.isVerified },
    });
  } else if (passwordless === undefined) await call('/recipe/user/passwordhash/import', password);
  else {
    const { add, ...contact } = passwordless;
    const { preAuthSessionId, linkCode } = await call('/recipe/signinup/code', contact);
    const { user } = await call('/recipe/signinup/code/consume', { preAuthSessionId, linkCode });
    if (add !== undefined) {
      await call('/recipe/user', { userId: (user as { id: string }).id, ...contact, phoneNumber: add }, 'PUT');
    }
  }
}

for (const line of readFileSync(file, 'utf8').split('\n')) {
  if (line !== '') await importRow(JSON.parse(line) as Row);
}
