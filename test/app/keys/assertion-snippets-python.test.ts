/** The Python of docs/assertion.md. */
import t from 'tap';
import { python } from '../../support/python3-cryptography.js';
import { checkSnippet } from './assertion-snippets.js';

t.setTimeout(120_000);

const driver = `
import sys
for line in open(sys.argv[1], encoding="latin-1").read().split("\\n"):
    try: print("holds", verify_assertion(*line.split("\\t"))["sub"])
    except Exception: print("refused")
`;

t.test('forged, replayed, expired and misdirected assertions are refused by the snippet in Python', async (t) => {
  checkSnippet(t, { language: 'python', file: 'verify.py', driver, commands: [[python, 'verify.py']] });
});
