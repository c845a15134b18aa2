import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { HOST } from '../../../engine/plan/place.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { hostForm, type RatingBlock } from '../../ratings/rating-block.ts';
import { evenRanges } from '../../ratings/row-ranges.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { HostPart } from './cut-blocks.ts';

const STAGE = 'shuffle-ratings';

/** Number of ratings of a bucket. At 12 bytes each they fit into a core's own cache. */
const BUCKET_RATINGS = 1 << 16;
const LEAST_BUCKETS = 16;

/**
 * Shuffles all ratings of a block. The random order depends only on the block and the seed. Returns them in
 * the layout rating-list, in host memory.
 */
export async function shuffleRatings(
  block: RatingBlock,
  seed: number,
  ctx: ExecutionContext,
): Promise<HostPart> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const { ratings } = block;
  const list: PartitionRef = { name: dataSetName('shuffled'), partition: 0, version: 0 };
  const columns = {
    rows: sharedArray(Uint32Array, ratings),
    columns: sharedArray(Uint32Array, ratings),
    values: sharedArray(Float32Array, ratings),
  };
  const partition = { layout: 'rating-list', rows: ratings, columns };
  const buckets = Math.max(LEAST_BUCKETS, Math.ceil(ratings / BUCKET_RATINGS));
  const params = { buckets, seed };
  const steps = new StepList(contracts);
  steps.move(STAGE, block.ref, HOST, place);
  steps.move(STAGE, list, HOST, place);
  const slices = (count: number) => evenRanges(count, 4 * parallelism).map(({ from, to }) => ({ from, to }));
  steps.task(
    STAGE,
    place,
    { kernel: 'deal-ratings', inputs: { block: block.ref }, outputs: { list }, params },
    { slices: slices(Math.ceil(ratings / buckets)) },
  );
  steps.task(
    STAGE,
    place,
    { kernel: 'shuffle-ratings', inputs: {}, outputs: { list }, params },
    { slices: slices(buckets) },
  );
  steps.free(STAGE, place, [list]);
  steps.free(STAGE, HOST, [list]);
  await runSteps(steps.steps, ctx, {
    given: [
      [block.ref, hostForm(block)],
      [list, partition],
    ],
  });
  return { ref: list, partition, ratings };
}
