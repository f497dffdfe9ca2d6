/** A head with so many headers or fewer is none of these; callers that are not made to cost send some 20. */
const mostUsual = 64;

/** Headers of larger heads before garbage is collected: Node takes some 300 bytes for each. */
const mostUncollected = 200_000;

/**
 * Has garbage collected once many headers of large heads came. Node keeps each of them outside of V8's heap, and tells
 * V8 a fifth of what they take: what is left of heads that were refused is not collected until it is 400 MiB and more.
 *
 * @param collectGarbage takes some 50 ms.
 * @returns to be told of each head how many headers it has.
 */
export function createLargeHeads(collectGarbage: () => void): (headers: number) => void {
  let uncollected = 0;
  return (headers) => {
    if (headers <= mostUsual) return;
    uncollected += headers;
    if (uncollected < mostUncollected) return;
    uncollected = 0;
    collectGarbage();
  };
}
