import t from 'tap';
import { takeSettled, thenSync } from '../../src/proxy/maybe-promise.js';

void t.test('a value that is here goes on at once, one that is to come when it comes', async (t) => {
  const double = (value: number): number => 2 * value;
  t.equal(thenSync(2, double), 4);
  const later = thenSync(Promise.resolve(2), double);
  t.type(later, Promise);
  t.equal(await later, 4);
});

void t.test('a value is taken at once, or when it comes', async (t) => {
  const taken: number[] = [];
  const take = (value: number): void => {
    taken.push(value);
  };
  const fail = (error: unknown): void => {
    t.fail(String(error));
  };
  takeSettled(1, take, fail);
  t.same(taken, [1]);
  takeSettled(Promise.resolve(2), take, fail);
  t.same(taken, [1]);
  await new Promise(setImmediate);
  t.same(taken, [1, 2]);
});

void t.test('what fails at once is thrown, what fails later is told', async (t) => {
  const told: unknown[] = [];
  const tell = (error: unknown): void => {
    told.push(error);
  };
  const broken = new Error('broken');
  const breakDown = (): void => {
    throw broken;
  };
  t.throws(() => takeSettled(1, breakDown, tell), broken);
  t.same(told, []);
  takeSettled(Promise.resolve(1), breakDown, tell);
  takeSettled(Promise.reject<number>(broken), () => t.fail('nothing came'), tell);
  await new Promise(setImmediate);
  t.same(told, [broken, broken]);
});
