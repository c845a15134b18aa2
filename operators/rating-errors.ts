import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import type { PartitionRef } from '../engine/partition.ts';
import { runStage } from '../engine/run-stage.ts';
import type { RatingBlock } from './rating-block.ts';
import { balancedRanges, taskCount } from './row-ranges.ts';
import type { SquaredErrorTask, WeightedNormTask } from './tasks.ts';

export interface ErrorSums {
  /** Σ (r - xᵀθ)² and Σ |r - xᵀθ|, in float64, added in task order. */
  readonly squared: number;
  readonly absolute: number;
  readonly count: number;
}

/** The errors of a block's ratings under the factors, and with biases the biases, of its rows and columns. */
export async function ratingErrors(
  stage: string,
  block: RatingBlock,
  factors: { readonly rowFactors: PartitionRef; readonly columnFactors: PartitionRef; readonly rowBias?: PartitionRef; readonly columnBias?: PartitionRef },
  params: { readonly rank: number; readonly mean?: number },
  device: Device,
  ctx: ExecutionContext,
): Promise<ErrorSums> {
  const tasks = balancedRanges(block.offsets, taskCount(block.ratings, device.kind)).map(
    (range): SquaredErrorTask => ({ kernel: 'squared-error', inputs: { block: block.ref, ...factors }, outputs: {}, params: { ...range, ...params } }),
  );
  const sums = { squared: 0, absolute: 0, count: 0 };
  for (const { values } of await runStage(ctx, stage, device, tasks)) {
    sums.squared += values.squared as number;
    sums.absolute += values.absolute as number;
    sums.count += values.count as number;
  }
  return sums;
}

/** Σ n_u ‖x_u‖² over all rows of the block: what λ multiplies in the loss. */
export async function weightedNorm(
  stage: string,
  block: RatingBlock,
  factors: PartitionRef,
  rank: number,
  device: Device,
  ctx: ExecutionContext,
): Promise<number> {
  const tasks = balancedRanges(block.offsets, taskCount(block.ratings, device.kind)).map(
    (range): WeightedNormTask => ({ kernel: 'weighted-norm', inputs: { block: block.ref, factors }, outputs: {}, params: { ...range, rank } }),
  );
  let sum = 0;
  for (const { values } of await runStage(ctx, stage, device, tasks)) sum += values.sum as number;
  return sum;
}
