import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import type { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { UNKNOWN_KEY } from '../../engine/keys/tables/key-table.ts';

/** Rows of factors with their ids. */
export interface FactorRows {
  readonly ids: KeyColumn;
  readonly factors: Float32Array;
}

/**
 * One version of factors that arrives in one or more frames, in any order. Each row is stored at the position
 * of its id in a list of ids, so a frame is not needed after it was added.
 */
export class ArrivingRows {
  readonly version: number;
  /** Row-major, in the order of the list. */
  readonly factors: Float32Array;
  readonly #rank: number;
  readonly #lookup: KeyLookup;
  readonly #known: Uint8Array;
  #missing: number;

  /** `factors`: the memory of the rows, whose contents are replaced. */
  constructor(version: number, lookup: KeyLookup, factors: Float32Array) {
    const rows = keyCount(lookup.keys);
    this.version = version;
    this.factors = factors;
    this.#lookup = lookup;
    this.#rank = rows === 0 ? 0 : factors.length / rows;
    this.#known = new Uint8Array(rows);
    this.#missing = rows;
  }

  /** Stores rows; a row that arrives again replaces the first one. Returns the number of rows that are not in the list. */
  add({ ids, factors }: FactorRows): number {
    const rank = this.#rank;
    const positions = this.#lookup.positionsOf(ids);
    let unknown = 0;
    for (let row = 0; row < positions.length; row++) {
      const position = positions[row];
      if (position === UNKNOWN_KEY) {
        unknown++;
        continue;
      }
      this.#missing -= 1 - this.#known[position];
      this.#known[position] = 1;
      this.factors.set(factors.subarray(row * rank, (row + 1) * rank), position * rank);
    }
    return unknown;
  }

  /** The number of rows of the list that have not arrived. */
  get missing(): number {
    return this.#missing;
  }
}
