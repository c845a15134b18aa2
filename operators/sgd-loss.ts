import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';
import { blockOf, type RatingBlock } from './rating-block.ts';
import { ratingErrors, weightedNorm } from './rating-errors.ts';
import type { SgdData } from './sgd-data.ts';
import { lambdasOf, type SgdParams } from './sgd-params.ts';
import type { SgdVersion } from './sgd-versions.ts';

const STAGE = 'train-error';

/**
 * J = Σ e² + λ_p Σ n_u ‖x_u‖² + λ_q Σ n_v ‖θ_v‖² in float64, from factors on the scale of SgdData, where each term is 1 / σ² of
 * itself when λ is 1 / σ of itself. Biases on that scale are among the factors; the 1s are taken off again.
 */
export class SgdLoss {
  readonly #data: SgdData;
  readonly #params: SgdParams;
  readonly #device: Device;
  readonly #ctx: ExecutionContext;
  /** A block of no ratings whose row pointers count those of the columns. */
  readonly #columnCounts: RatingBlock;

  constructor(data: SgdData, params: SgdParams, device: Device, ctx: ExecutionContext) {
    this.#data = data;
    this.#params = params;
    this.#device = device;
    this.#ctx = ctx;
    const ref: PartitionRef = { name: dataSetName('column-counts'), partition: 0, version: 0 };
    const offsets = data.columnOffsets;
    const counts = { layout: 'rating-block', rows: offsets.length - 1, columns: { offsets, indices: new Uint32Array(0), values: new Float32Array(0) } };
    device.put(ref, counts);
    this.#columnCounts = { ...blockOf(ref, counts), ratings: data.block.ratings };
  }

  async of(version: SgdVersion): Promise<{ readonly loss: number; readonly trainRmse: number }> {
    const { block, rows, columns, scale } = this.#data;
    const rank = this.#params.rank + (this.#params.biases ? 2 : 0);
    const errors = await ratingErrors(STAGE, block, { rowFactors: version.rows, columnFactors: version.columns }, { rank }, this.#device, this.#ctx);
    const lambdas = lambdasOf(this.#params);
    let penalty = 0;
    for (const [side, counted, factors] of [[rows, block, version.rows], [columns, this.#columnCounts, version.columns]] as const) {
      const lambda = lambdas[side.name] / scale.deviation;
      if (lambda === 0) continue;
      const norm = await weightedNorm(STAGE, counted, factors, rank, this.#device, this.#ctx);
      penalty += lambda * (norm - (this.#params.biases ? block.ratings : 0));
    }
    return { loss: scale.deviation ** 2 * (errors.squared + penalty), trainRmse: scale.deviation * Math.sqrt(errors.squared / errors.count) };
  }

  release(): void {
    this.#device.release(this.#columnCounts.ref);
  }
}
