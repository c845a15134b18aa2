import { DataError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { UNKNOWN_KEY } from '../../engine/keys/tables/key-table.ts';

/** One version of a block's own factors, received in one or more frames, in the order of the block's rows. */
export class PreviousRows {
  readonly version: number;
  readonly #rank: number;
  readonly #lookup: KeyLookup;
  readonly #known: Uint8Array;
  readonly #factors: Float32Array;
  #missing: number;

  constructor(version: number, keys: KeyColumn, rank: number) {
    this.version = version;
    this.#rank = rank;
    this.#lookup = new KeyLookup(keys);
    this.#missing = keyCount(keys);
    this.#known = new Uint8Array(this.#missing);
    this.#factors = new Float32Array(this.#missing * rank);
  }

  /** Throws DataError if a row is not one of the block's rows. */
  add(ids: KeyColumn, factors: Float32Array): void {
    const positions = this.#lookup.positionsOf(ids);
    if (positions.includes(UNKNOWN_KEY))
      throw new DataError(
        `a frame of ${formatCount(positions.length)} previous rows has rows that the block does not have`,
        { phase: 'train', file: 'the feed' },
      );
    const rank = this.#rank;
    positions.forEach((position, row) => {
      this.#missing -= 1 - this.#known[position];
      this.#known[position] = 1;
      this.#factors.set(factors.subarray(row * rank, (row + 1) * rank), position * rank);
    });
  }

  /** All factors, once every row has arrived. */
  get whole(): Float32Array | undefined {
    return this.#missing === 0 ? this.#factors : undefined;
  }
}
