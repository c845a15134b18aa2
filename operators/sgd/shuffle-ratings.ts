import type { Device } from '../../engine/executor.ts';
import type { ExecutionContext } from '../../engine/operator.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { runStage } from '../../engine/run-stage.ts';
import type { RatingBlock } from '../rating-block.ts';
import type { DealRatingsTask, ShuffleRatingsTask } from '../tasks.ts';

const STAGE = 'shuffle-ratings';

/** Ratings of a bucket: 12 bytes each stay within a core's own cache. */
const BUCKET_RATINGS = 1 << 16;
const LEAST_BUCKETS = 16;

/** All ratings of a block in a random order, a function of the block and the seed alone (layout rating-list). */
export async function shuffleRatings(block: RatingBlock, seed: number, device: Device, ctx: ExecutionContext): Promise<PartitionRef> {
  const { ratings } = block;
  const list: PartitionRef = { name: dataSetName('shuffled'), partition: 0, version: 0 };
  const columns = { rows: sharedArray(Uint32Array, ratings), columns: sharedArray(Uint32Array, ratings), values: sharedArray(Float32Array, ratings) };
  device.put(list, { layout: 'rating-list', rows: ratings, columns });
  const buckets = Math.max(LEAST_BUCKETS, Math.ceil(ratings / BUCKET_RATINGS));
  const params = { buckets, seed };
  const deal = evenRanges(Math.ceil(ratings / buckets), 4 * device.parallelism).map(
    (range): DealRatingsTask => ({ kernel: 'deal-ratings', inputs: { block: block.ref }, outputs: { list }, params: { ...range, ...params } }),
  );
  await runStage(ctx, STAGE, device, deal);
  const shuffle = evenRanges(buckets, 4 * device.parallelism).map(
    (range): ShuffleRatingsTask => ({ kernel: 'shuffle-ratings', inputs: {}, outputs: { list }, params: { ...range, ...params } }),
  );
  await runStage(ctx, STAGE, device, shuffle);
  return list;
}

/** 0 .. count cut into at most `parts` ranges of about the same length. */
export function evenRanges(count: number, parts: number): { readonly from: number; readonly to: number }[] {
  const used = Math.min(parts, count);
  return Array.from({ length: used }, (_, part) => ({ from: Math.floor((count * part) / used), to: Math.floor((count * (part + 1)) / used) }));
}
