import { keyCount } from '../../engine/keys/key-column.ts';
import type { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { sharedArray } from '../../engine/partition.ts';
import { ArrivingRows, type FactorRows } from './arriving-rows.ts';

/**
 * The rows of the fixed side that one block needs, in the order of the block's columns. A worker solves one
 * block at a time, so all of its blocks use the same memory, one after the other.
 */
export class FixedRows {
  readonly #rank: number;
  #memory = sharedArray(Float32Array, 0);
  #block: string | undefined;
  #rows: ArrivingRows | undefined;

  constructor(rank: number) {
    this.#rank = rank;
  }

  /**
   * Adds rows of a version for a block, whose columns `lookup` has. Rows of another version or another block
   * are given up. Rows that the block does not need are skipped.
   */
  add(block: string, version: number, lookup: KeyLookup, rows: FactorRows): void {
    if (this.#block !== block || this.#rows?.version !== version) {
      const length = keyCount(lookup.keys) * this.#rank;
      if (this.#memory.length < length) this.#memory = sharedArray(Float32Array, length);
      this.#block = block;
      this.#rows = new ArrivingRows(version, lookup, this.#memory.subarray(0, length));
    }
    this.#rows.add(rows);
  }

  /** The rows of a block; undefined if those of another block are in the memory. */
  of(block: string): ArrivingRows | undefined {
    return this.#block === block ? this.#rows : undefined;
  }

  /** Gives up the rows of a block. */
  drop(block: string): void {
    if (this.#block === block) this.#block = this.#rows = undefined;
  }
}
