import { dataSetName, partitionRef } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { freeAt, giveTo } from '../../../engine/run/run-steps.ts';
import { blockOf, emptyBlock, hostForm, type RatingBlock, rowsOfBlock } from '../../ratings/ratings.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import type { SizedAlsParams } from '../als-params.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { factorsOf, type PlacedFactors, RowsRun, slicesOf } from './solve-rows.ts';

const STAGE = 'equation-shares';

/**
 * The ratings of a block by its columns, grouped by the columns' owners.
 *
 *     rows {0: a, 1: b}, {1: c}; owners of the columns 0, 1: 1, 0
 *     columns 1, 0; rows {0: b, 1: c}, {0: a}; starts 0 1 2
 */
export interface ColumnsByOwner {
  /** Row k has the ratings of the column columns[k]. */
  readonly block: RatingBlock;
  readonly columns: Uint32Array;
  /** The rows of owner o are [starts[o], starts[o + 1]). */
  readonly starts: Uint32Array;
}

/** Transposes a block, in the main thread and once for a training. */
export function columnsByOwner(block: RatingBlock, owners: Uint32Array, count: number): ColumnsByOwner {
  const starts = new Uint32Array(count + 1);
  for (const owner of owners) starts[owner + 1]++;
  for (let owner = 0; owner < count; owner++) starts[owner + 1] += starts[owner];
  const columns = new Uint32Array(owners.length);
  const rowOf = new Uint32Array(owners.length);
  const next = starts.slice();
  for (let column = 0; column < owners.length; column++) {
    rowOf[column] = next[owners[column]]++;
    columns[rowOf[column]] = column;
  }
  const lengths = new Int32Array(owners.length);
  for (let k = 0; k < block.ratings; k++) lengths[rowOf[block.indices[k]]]++;
  const made = blockOf({ ...block.ref, name: `${block.ref.name}/by-owner` }, emptyBlock(lengths));
  const cursors = made.offsets.slice();
  for (let row = 0; row < block.rows; row++) {
    for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++) {
      const at = cursors[rowOf[block.indices[k]]]++;
      made.indices[at] = row;
      made.values[at] = block.values[k];
    }
  }
  return { block: made, columns, starts };
}

/**
 * The share of a block of rows in the equations of the other side's rows: for each of its columns, A and b
 * summed over the column's ratings in this block. The sum of all blocks' shares has all ratings of a column.
 */
export class EquationShares {
  readonly #cut: ColumnsByOwner;
  readonly #params: SizedAlsParams;
  readonly #device: Device;
  readonly #ctx: ExecutionContext;
  #placed: { readonly version: number; readonly factors: PlacedFactors } | undefined;

  constructor(cut: ColumnsByOwner, params: SizedAlsParams, ctx: ExecutionContext) {
    [this.#cut, this.#params, this.#ctx] = [cut, params, ctx];
    this.#device = computeDevice(ctx.executor);
  }

  /** Sends a version of the block's rows, in the unit of training, to the device, once for all owners. */
  async place(version: number, rows: Float32Array): Promise<void> {
    if (this.#placed?.version === version) return;
    await this.rest();
    const { rank } = this.#params;
    const factors = { ref: partitionRef(`${dataSetName(STAGE)}/fixed`), rows: rows.length / rank };
    await giveTo(this.#ctx, this.#device.info.place, [[factors.ref, factorsOf(rows, rank)]]);
    this.#placed = { version, factors };
  }

  /** Columns of an owner, `most` at a time, with their equations from the rows that are placed. */
  async *form(
    owner: number,
    most: number,
  ): AsyncGenerator<{ readonly columns: Uint32Array; readonly equations: Float32Array }> {
    const { columns, starts } = this.#cut;
    for (let from = starts[owner]; from < starts[owner + 1]; from += most) {
      const to = Math.min(from + most, starts[owner + 1]);
      yield { columns: columns.subarray(from, to), equations: await this.#sum(from, to) };
    }
  }

  async #sum(from: number, to: number): Promise<Float32Array> {
    if (this.#placed === undefined) throw new Error('no version of the rows is placed');
    const { rank, implicitPrefs } = this.#params;
    const run = new RowsRun(STAGE, this.#device, this.#ctx);
    const block = rowsOfBlock(this.#cut.block, from, to, run.ref('block'));
    run.send(block.ref, hostForm(block));
    const equations = run.matrix('equations', to - from, equationColumns(rank, false));
    const task = {
      kernel: 'normal-equations' as const,
      inputs: { block: block.ref, fixed: this.#placed.factors.ref },
      outputs: { equations },
      params: { rank, ...(implicitPrefs && { implicit: implicitWeights(this.#params) }) },
    };
    run.sliced(task, slicesOf(block, this.#device));
    run.handOut(equations);
    const { handed } = await run.end();
    return handed[0].columns.values as Float32Array;
  }

  /** Frees the device's memory of the rows. */
  async rest(): Promise<void> {
    if (this.#placed === undefined) return;
    const { ref } = this.#placed.factors;
    this.#placed = undefined;
    await freeAt(this.#ctx, STAGE, this.#device.info.place, [ref]);
  }
}
