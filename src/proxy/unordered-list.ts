/** What is in a list knows where. */
export interface Listed {
  /** Its place in the list; -1 while it is in none. The list's own. */
  place: number;
}

/**
 * Things that come and go by the thousand, each in one such list at most. A `Set` makes a new table for every so many
 * that have gone, and an old table refers to the next one: once one of them has become old, all that were ever in the
 * set are held until V8 collects old objects.
 */
export class UnorderedList<T extends Listed> {
  private readonly items: T[] = [];

  get size(): number {
    return this.items.length;
  }

  has(item: T): boolean {
    return this.items[item.place] === item;
  }

  /** Nothing where it is in the list already. */
  add(item: T): void {
    if (this.has(item)) return;
    item.place = this.items.length;
    this.items.push(item);
  }

  /** The last one takes its place. */
  delete(item: T): void {
    if (!this.has(item)) return;
    const last = this.items.pop();
    if (last !== undefined && last !== item) {
      this.items[item.place] = last;
      last.place = item.place;
    }
    item.place = -1;
  }

  /** Those that are in it now; what is deleted meanwhile is told all the same. */
  [Symbol.iterator](): IterableIterator<T> {
    return [...this.items].values();
  }
}
