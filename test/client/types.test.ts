import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { typeFaults } from '../support/type-faults.js';
import { programFolder } from './program-folder.js';

t.test('it has types', async (t) => {
  const dir = programFolder(t);
  const file = join(dir, 'program.mts');
  writeFileSync(
    file,
    `import { createTokenSource, TokenError, type TokenSource } from 'sallyport/client';
const tokens: TokenSource = createTokenSource({
  core: { url: 'http://127.0.0.1:3567', apiKey: () => 'key' },
  issuer: 'https://api.example.com',
  claims: { aud: 'a', sub: 'b', source: 'c', token_type: 'd', permissions: ['e'] },
  onIssued: ({ time, jti }) => console.log(time, jti),
});
const token: string = await tokens.getToken({ signal: AbortSignal.timeout(1) });
try { tokens.invalidate(token); } catch (error) { if (error instanceof TokenError && error.code === 'unauthorized') throw error; }
// @ts-expect-error: no claim of one's own
createTokenSource({ core: { url: 'x' }, issuer: 'x', claims: { aud: 'a', sub: 'b', source: 'c', token_type: 'd', permissions: [], jti: 'x' } });
`,
  );
  t.same(typeFaults([file]), []);
});
