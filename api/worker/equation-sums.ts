import { DataError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import type { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { UNKNOWN_KEY } from '../../engine/keys/tables/key-table.ts';
import { sharedArray } from '../../engine/partition.ts';
import { equationColumns, equationLayout } from '../../operators/tasks/equation-tasks.ts';
import type { FactorRows } from './arriving-rows.ts';

/** Above this number of ratings float32 cannot count each one. */
const COUNTED = 2 ** 24;

/**
 * The sums of a block's equations for one version of the fixed side, to which the shares of all blocks of that
 * side are added as they arrive: their order decides the last bits.
 */
export class EquationSums {
  readonly version: number;
  readonly #lookup: KeyLookup;
  readonly #offsets: Int32Array;
  readonly #rank: number;
  readonly #values: Float32Array;

  /** `lookup` finds a block's rows; `offsets`: row pointers of their ratings. */
  constructor(version: number, lookup: KeyLookup, offsets: Int32Array, rank: number) {
    [this.version, this.#lookup, this.#offsets, this.#rank] = [version, lookup, offsets, rank];
    this.#values = sharedArray(Float32Array, (offsets.length - 1) * equationColumns(rank, false));
  }

  /** Adds a share. Throws DataError for rows that the block does not have. */
  add({ ids, factors: equations }: FactorRows): void {
    const columns = equationColumns(this.#rank, false);
    const positions = this.#lookup.positionsOf(ids);
    if (positions.includes(UNKNOWN_KEY))
      throw new DataError(
        `a frame of ${formatCount(positions.length)} equations has rows that the block does not have`,
        { phase: 'train', file: 'the feed' },
      );
    for (let row = 0; row < positions.length; row++) {
      const [to, from] = [positions[row] * columns, row * columns];
      for (let k = 0; k < columns; k++) this.#values[to + k] += equations[from + k];
    }
  }

  /** The sums. Throws DataError if a row's shares do not have exactly the ratings of the row. */
  complete(): Float32Array {
    const columns = equationColumns(this.#rank, false);
    const { n } = equationLayout(this.#rank);
    for (let row = 0; row < this.#offsets.length - 1; row++) {
      const ratings = this.#offsets[row + 1] - this.#offsets[row];
      const arrived = this.#values[row * columns + n];
      if (Math.abs(arrived - ratings) <= (ratings > COUNTED ? ratings / COUNTED : 0)) continue;
      throw new DataError(
        `the equations of the row ${keyText(this.#lookup.keys, row)} count ${formatCount(arrived)} of its ${formatCount(ratings)} ratings`,
        { phase: 'train', file: 'the feed', advice: 'Send the share of each block of the other side once' },
      );
    }
    return this.#values;
  }
}
