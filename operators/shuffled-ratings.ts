import { hostDevice } from '../engine/devices.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../engine/partition.ts';
import { runSteps } from '../engine/run/run-steps.ts';
import { StepList } from '../engine/run/step-list.ts';
import type { RatingBlock } from './rating-block.ts';
import { evenRanges } from './row-ranges.ts';
import { addSliced } from './run-tasks.ts';
import { contracts } from './tasks.ts';

const STAGE = 'shuffle-ratings';

/** Ratings of a bucket: 12 bytes each stay within a core's own cache. */
const BUCKET_RATINGS = 1 << 16;
const LEAST_BUCKETS = 16;

/** All ratings of a block in a random order, a function of the block and the seed alone (layout rating-list). */
export async function shuffleRatings(block: RatingBlock, seed: number, ctx: ExecutionContext): Promise<PartitionRef> {
  const { ratings } = block;
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const list: PartitionRef = { name: dataSetName('shuffled'), partition: 0, version: 0 };
  const columns = { rows: sharedArray(Uint32Array, ratings), columns: sharedArray(Uint32Array, ratings), values: sharedArray(Float32Array, ratings) };
  const params = { buckets: Math.max(LEAST_BUCKETS, Math.ceil(ratings / BUCKET_RATINGS)), seed };
  const steps = new StepList(contracts);
  addSliced(steps, STAGE, place, { kernel: 'deal-ratings', inputs: { block: block.ref }, outputs: { list }, params }, evenRanges(Math.ceil(ratings / params.buckets), 4 * parallelism));
  addSliced(steps, STAGE, place, { kernel: 'shuffle-ratings', inputs: {}, outputs: { list }, params }, evenRanges(params.buckets, 4 * parallelism));
  await runSteps(steps.steps, ctx, { given: [[list, { layout: 'rating-list', rows: ratings, columns }, place]] });
  return list;
}
