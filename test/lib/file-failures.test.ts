import t from 'tap';
import { codeOf, fileFailure } from '../../src/lib/errors.js';
import { formatMode, openToOthers } from '../../src/lib/secret-file-access.js';

const failed = (code: unknown): Error => Object.assign(new Error('failed'), { code });

t.test('the code of an error, where it has one', (t) => {
  t.equal(codeOf(failed('ENOENT')), 'ENOENT');
  t.equal(codeOf(failed(5)), 'unknown error');
  t.equal(codeOf(new Error('none'), ''), '');
  t.equal(codeOf('ENOENT'), 'unknown error');
  t.end();
});

t.test('why a file cannot be read, in words', (t) => {
  const words = (code: string): string => fileFailure(failed(code), 'is a link');
  t.equal(words('ENOENT'), 'does not exist');
  t.equal(words('EACCES'), 'may not be read by this user');
  t.equal(words('EPERM'), 'may not be read by this user');
  t.equal(words('ELOOP'), 'is a link');
  t.equal(words('EMLINK'), 'is a link');
  t.equal(words('ENXIO'), 'is no regular file');
  t.equal(words('EIO'), 'cannot be read (EIO)');
  t.end();
});

t.test('who else may use a file', (t) => {
  t.equal(openToOthers(0o100600), null);
  t.equal(openToOthers(0o100640), 'is open to others (mode 0640); chmod 600 it');
  t.equal(formatMode(0o104700), '4700');
  t.end();
});
