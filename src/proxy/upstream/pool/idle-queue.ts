/** Room for as many as most proxies ever have idle; it doubles where that is not enough. A power of two. */
const firstRoom = 64;

/** A queue as a ring: to take the first of an array moves all that follow, at each request. */
export class IdleQueue<T> {
  private places: (T | null)[] = new Array<T | null>(firstRoom).fill(null);
  private first = 0;
  private count = 0;

  get length(): number {
    return this.count;
  }

  push(item: T): void {
    if (this.count === this.places.length) this.fillWith(this.takeAll(), this.places.length * 2);
    this.places[this.placeOf(this.count)] = item;
    this.count += 1;
  }

  /** The one at this index, 0 for the first; `null` where there is none. */
  at(index: number): T | null {
    return index < this.count ? (this.places[this.placeOf(index)] ?? null) : null;
  }

  /** Takes the first; `null` where there is none. */
  shift(): T | null {
    if (this.count === 0) return null;
    const item = this.places[this.first] ?? null;
    this.places[this.first] = null;
    this.first = this.placeOf(1);
    this.count -= 1;
    return item;
  }

  /** Takes this one out, and says at which index it was; -1 where it was not in here. */
  remove(gone: T): number {
    if (!this.places.includes(gone)) return -1;
    const all = this.takeAll();
    const index = all.indexOf(gone);
    all.splice(index, 1);
    this.fillWith(all, this.places.length);
    return index;
  }

  /** Empties it; the first comes first. */
  takeAll(): T[] {
    const all = [];
    for (let item = this.shift(); item !== null; item = this.shift()) all.push(item);
    return all;
  }

  private fillWith(items: readonly T[], room: number): void {
    this.places = [...items, ...new Array<null>(room - items.length).fill(null)];
    this.first = 0;
    this.count = items.length;
  }

  private placeOf(index: number): number {
    return (this.first + index) & (this.places.length - 1);
  }
}
