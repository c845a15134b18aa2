/** Pairs of users and items, a column each; ids are whole numbers of at most 31 bits, as in the files. */
export interface Pairs {
  readonly users: Int32Array;
  readonly items: Int32Array;
}

/** The parts of a published split. */
export interface Split {
  readonly train: Pairs;
  readonly test: Pairs;
  /** The items to rank for each user, if the table was not made by ranking all items. */
  readonly candidates?: Pairs;
}

/** Collects pairs one at a time. */
export class PairList {
  readonly #users: number[] = [];
  readonly #items: number[] = [];

  add(user: number, item: number): void {
    this.#users.push(user);
    this.#items.push(item);
  }

  toPairs(): Pairs {
    return { users: Int32Array.from(this.#users), items: Int32Array.from(this.#items) };
  }
}
