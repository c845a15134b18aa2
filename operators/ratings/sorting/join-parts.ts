import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { giveTo, takeFrom } from '../../../engine/run/hand-over.ts';
import { hostForm, type RatingBlock } from '../rating-block.ts';
import type { HeldBlock } from '../ratings.ts';

/**
 * Copies parts into one block of `rows` rows and at most `most` ratings. Frees each part before the next one
 * is made, so that only one is in memory twice.
 */
export async function joinParts(
  parts: AsyncIterable<HeldBlock>,
  rows: number,
  most: number,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const { place } = hostDevice(ctx.executor).info;
  const [offsets, indices, values] = [
    sharedArray(Int32Array, rows + 1),
    sharedArray(Uint32Array, most),
    sharedArray(Float32Array, most),
  ];
  let ratings = 0;
  for await (const { from, block } of parts) {
    for (let row = 0; row < block.rows; row++) offsets[from + row + 1] = ratings + block.offsets[row + 1];
    indices.set(block.indices, ratings);
    values.set(block.values, ratings);
    ratings += block.ratings;
    await takeFrom(ctx, 'rating-parts', place, [block.ref]);
  }
  const ref: PartitionRef = { name: dataSetName('joined'), partition: 0, version: 0 };
  const joined: RatingBlock = {
    ref,
    rows,
    ratings,
    offsets,
    indices: indices.subarray(0, ratings),
    values: values.subarray(0, ratings),
  };
  await giveTo(ctx, place, [[ref, hostForm(joined)]]);
  return joined;
}
