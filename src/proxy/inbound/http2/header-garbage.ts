/** Headers of HTTP/2 before garbage is collected: Node takes some 270 bytes for each, 77 MiB for all. */
const mostUncollected = 300_000;

/**
 * Has garbage collected once many headers of HTTP/2 came. Node keeps the value of each outside of V8's heap, where V8
 * knows of a fifth of it, and as an old object. A proxy that does nothing but serve makes few other old objects, so
 * that on Node.js 20 V8 would collect what is left of 240,000 requests at half a gigabyte, or later. Where V8 collects
 * old objects by itself, as on 24, this is once more in some dozens.
 *
 * @param collectGarbage takes some 50 ms.
 * @returns to be told of each head how many headers it has.
 */
export function createHeaderGarbage(collectGarbage: () => void): (headers: number) => void {
  let uncollected = 0;
  return (headers) => {
    uncollected += headers;
    if (uncollected < mostUncollected) return;
    uncollected = 0;
    collectGarbage();
  };
}
