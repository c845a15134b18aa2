import type { ExecutionContext } from '../engine/operator.ts';
import { allEnded } from '../engine/all-ended.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';
import type { GridBlock } from '../engine/plan/grid-order.ts';
import { runBlockPipeline } from './block-pipeline.ts';
import { blockOf, type RatingBlock } from './rating-block.ts';
import { type ErrorSums, weightedNorm } from './rating-errors.ts';
import type { RatingsPart, RowBand } from './row-band.ts';
import type { BlockLayout } from './sgd-block-layout.ts';
import type { BlocksVersion } from './sgd-blocks.ts';
import type { SgdData } from './sgd-data.ts';
import { lambdasOf, type SgdParams } from './sgd-params.ts';
import type { SquaredErrorTask, WeightedNormTask } from './tasks.ts';

/** What one block tells: its errors, and where it is the one to ask, Σ n_v ‖θ_v‖² over its segment. */
interface BlockSums extends ErrorSums {
  readonly norm: number;
}

/**
 * The loss and errors of factors that are by band on devices and by segment on the host: a sweep over the same blocks in which any
 * device may read any segment. Sums are added in the order of bands and segments, whatever ran when.
 */
export class BlockErrors {
  readonly #layout: BlockLayout;
  readonly #data: SgdData;
  readonly #params: SgdParams;
  readonly #ctx: ExecutionContext;
  readonly #name = dataSetName('swept');
  readonly #bandCounts: readonly RatingBlock[];
  readonly #segmentCounts: readonly RatingBlock[];
  /** Which band's device measures a segment. */
  readonly #measuredBy: readonly number[];
  #sent = 0;

  constructor(layout: BlockLayout, data: SgdData, params: SgdParams, ctx: ExecutionContext) {
    const { bands, segments, width, blocks } = layout;
    this.#layout = layout;
    this.#data = data;
    this.#params = params;
    this.#ctx = ctx;
    this.#measuredBy = segments.map((_, c) => {
      const rated = bands.map((_band, d) => d).filter((d) => blocks[d][c].sorted.ratings > 0);
      return rated[c % rated.length] ?? 0;
    });
    this.#bandCounts = bands.map((band, d) => this.#counts(band, d, data.block.offsets.subarray(band.range.from, band.range.to + 1), band.rows));
    this.#segmentCounts = segments.map(({ from, to }, c) => this.#counts(bands[this.#measuredBy[c]], bands.length + c, data.columnOffsets.subarray(from, to + 1), width));
  }

  /** J of SgdLoss and the training RMSE, in the ratings' own unit. */
  async loss(version: BlocksVersion): Promise<{ readonly loss: number; readonly trainRmse: number }> {
    const { rows, columns, scale, block } = this.#data;
    const { bands, blocks } = this.#layout;
    const { biases } = this.#params;
    const sums = await this.#sweep('train-error', blocks.map((row) => row.map(({ sorted }) => sorted)), version, true);
    const bandNorms = await allEnded(bands.map(({ device }, d) => weightedNorm('train-error', this.#bandCounts[d], version.rows[d].rows, this.#features, device, this.#ctx)));
    const lambdas = lambdasOf(this.#params);
    let penalty = 0;
    for (const [{ name }, norm] of [[rows, bandNorms.reduce((sum, one) => sum + one, 0)], [columns, sums.norm]] as const) {
      // A feature that is 1 counts once for each rating.
      penalty += (lambdas[name] / scale.deviation) * (norm - (biases ? block.ratings : 0));
    }
    return { loss: scale.deviation ** 2 * (sums.squared + penalty), trainRmse: scale.deviation * Math.sqrt(sums.squared / sums.count) };
  }

  test(version: BlocksVersion): Promise<ErrorSums> {
    return this.#sweep('test-error', this.#layout.tests, version, false);
  }

  get #features(): number {
    return this.#params.rank + (this.#params.biases ? 2 : 0);
  }

  async #sweep(stage: string, parts: readonly (readonly RatingsPart[])[], version: BlocksVersion, norms: boolean): Promise<BlockSums> {
    const { bands, segments } = this.#layout;
    const found: BlockSums[][] = bands.map(() => []);
    // Each device begins at another segment.
    const order = segments.flatMap((_, at) => bands.map((_band, row): GridBlock => ({ row, column: (at + row) % segments.length }))).filter(({ row, column }) => parts[row][column].ratings > 0);
    await runBlockPipeline(this.#ctx, stage, order, {
      inOrder: true,
      exclusive: false,
      stage: ({ row, column }, signal) => bands[row].stage(parts[row][column], stage, this.#ctx, signal),
      begin: (block, signal) => {
        const ended = this.#measure(stage, block, parts[block.row][block.column], version, norms, signal).then((sums) => void (found[block.row][block.column] = sums));
        return { ended, freed: ended };
      },
      leave: ({ row, column }) => bands[row].leave(parts[row][column]),
    });
    const sum = (of: (one: BlockSums) => number) => found.flat().reduce((total, one) => total + of(one), 0);
    return { squared: sum(({ squared }) => squared), absolute: sum(({ absolute }) => absolute), count: sum(({ count }) => count), norm: sum(({ norm }) => norm) };
  }

  async #measure(stage: string, { row, column }: GridBlock, part: RatingsPart, version: BlocksVersion, norms: boolean, signal: AbortSignal): Promise<BlockSums> {
    const { bands, width } = this.#layout;
    const band = bands[row];
    const segment: PartitionRef = { name: `${this.#name}/${row}`, partition: column, version: this.#sent++ };
    band.put(segment, { layout: 'factors', rows: width, columns: { values: version.columns[column].factors } });
    try {
      const rank = this.#features;
      const errors: SquaredErrorTask = { kernel: 'squared-error', inputs: { block: part.ref, rowFactors: version.rows[row].rows, columnFactors: segment }, outputs: {}, params: { from: 0, to: band.rows, rank } };
      const norm: WeightedNormTask = { kernel: 'weighted-norm', inputs: { block: this.#segmentCounts[column].ref, factors: segment }, outputs: {}, params: { from: 0, to: width, rank } };
      const tasks = norms && this.#measuredBy[column] === row ? [errors, norm] : [errors];
      const results = await allEnded(tasks.map((task) => band.device.run(task, signal)));
      for (const { metrics } of results) this.#ctx.metrics.add(stage, metrics);
      const [{ values }, measured] = results;
      return { squared: values.squared as number, absolute: values.absolute as number, count: values.count as number, norm: (measured?.values.sum as number | undefined) ?? 0 };
    } finally {
      band.release(segment);
    }
  }

  /** A block of no ratings whose row pointers count those of a band's rows, or of a segment's columns; rows beyond have none. */
  #counts(band: RowBand, partition: number, offsets: Int32Array, rows: number): RatingBlock {
    const ref: PartitionRef = { name: `${this.#name}/counts`, partition, version: 0 };
    const own = Int32Array.from({ length: rows + 1 }, (_, row) => offsets[Math.min(row, offsets.length - 1)] - offsets[0]);
    const counts = { layout: 'rating-block', rows, columns: { offsets: own, indices: new Uint32Array(0), values: new Float32Array(0) } };
    band.put(ref, counts);
    return { ...blockOf(ref, counts), ratings: offsets[offsets.length - 1] - offsets[0] };
  }
}
