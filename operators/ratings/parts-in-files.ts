import { CapacityError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import { dataSetName, type PartitionRef, partitionRef, sharedArray } from '../../engine/partition.ts';
import { SPILL } from '../../engine/plan/place.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { giveTo, takeFrom } from '../../engine/run/hand-over.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { blockLimit } from '../planner/sizes.ts';
import { blockOf, hostForm, type RatingBlock } from './rating-block.ts';
import {
  type HeldBlock,
  ofParts,
  partOfBlocks,
  type RatingPart,
  type Ratings,
  soleBlock,
} from './ratings.ts';

const STAGE = 'rating-parts';

/**
 * Yields the ratings block by block: parts in the order of rows, blocks of a part in the order of columns. A
 * part in a file is read when it is its turn, into the arrays of the part before: use a block only until the
 * next one is requested.
 */
export async function* blocksOf(ratings: Ratings, ctx: ExecutionContext): AsyncGenerator<HeldBlock, void> {
  for (const part of ratings.parts) {
    if (part.blocks === undefined) yield* blockInFile(part, ctx);
    else for (const block of part.blocks) yield { from: part.from, ...block };
  }
}

async function* blockInFile(
  { from, ref }: RatingPart,
  ctx: ExecutionContext,
): AsyncGenerator<HeldBlock, void> {
  const { place } = hostDevice(ctx.executor).info;
  const reading = new StepList({});
  reading.move(STAGE, ref, SPILL, place);
  reading.handOut(STAGE, ref, place);
  const { handed } = await runSteps(reading.steps, ctx);
  try {
    yield { from, firstColumn: 0, block: blockOf(ref, handed[0]) };
  } finally {
    const freeing = new StepList({});
    freeing.free(STAGE, place, [ref]);
    await runSteps(freeing.steps, ctx);
  }
}

/** All ratings as one block. Throws CapacityError if they exceed a block. */
export async function inMemory(ratings: Ratings, ctx: ExecutionContext): Promise<RatingBlock> {
  const block = soleBlock(ratings);
  if (block !== undefined) return block;
  if (ratings.ratings > blockLimit.ratings)
    throw new CapacityError(
      `${formatCount(ratings.ratings)} ratings are more than the ${formatCount(blockLimit.ratings)} that rankings of a validation set leave out`,
      {
        phase: 'train',
        advice: 'Leave rankings out while training, and use a part of the data to choose parameters',
      },
    );
  return joinParts(blocksOf(ratings, ctx), ratings.rows, ratings.ratings, ctx);
}

/**
 * Writes parts to files as they arrive, and frees them in the CPU's memory. `slices`: the slices of a pass
 * over all ratings, in order, if a part ends where a slice ends.
 */
export async function spillParts(
  parts: AsyncIterable<HeldBlock>,
  slices: readonly RowRange[] | undefined,
  name: string,
  ctx: ExecutionContext,
): Promise<Ratings> {
  const { place } = hostDevice(ctx.executor).info;
  const spilled: RatingPart[] = [];
  for await (const { from, block } of parts) {
    const ref = partitionRef(name, spilled.length);
    const steps = new StepList({});
    steps.move(STAGE, block.ref, place, SPILL, { as: ref });
    steps.free(STAGE, place, [block.ref]);
    await runSteps(steps.steps, ctx);
    const own = slices
      ?.filter((slice) => slice.from >= from && slice.to <= from + block.rows)
      .map((slice) => ({ from: slice.from - from, to: slice.to - from }));
    const { rows, ratings, offsets } = block;
    spilled.push({ ref, from, rows, ratings, offsets, ...(own && { slices: own }) });
  }
  return ofParts(spilled);
}

/**
 * The same rows with the ratings that `change` returns for each block. For parts in files, the old file is
 * removed and a new one written.
 */
export async function replaceParts(
  ratings: Ratings,
  change: (block: HeldBlock) => RatingBlock | Promise<RatingBlock>,
  ctx: ExecutionContext,
): Promise<Ratings> {
  const parts: RatingPart[] = [];
  for (const part of ratings.parts) {
    const { from, blocks } = part;
    if (blocks === undefined)
      for await (const held of blockInFile(part, ctx))
        parts.push(await replacedInFile(part, held.block, await change(held), ctx));
    else {
      const changed = [];
      for (const one of blocks) changed.push({ ...one, block: await change({ from, ...one }) });
      parts.push(partOfBlocks(from, changed));
    }
  }
  return ofParts(parts);
}

async function replacedInFile(
  old: RatingPart,
  read: RatingBlock,
  block: RatingBlock,
  ctx: ExecutionContext,
): Promise<RatingPart> {
  const { place } = hostDevice(ctx.executor).info;
  const ref: PartitionRef = { ...old.ref, version: old.ref.version + 1 };
  const steps = new StepList({});
  steps.move(STAGE, ref, place, SPILL);
  steps.free(STAGE, place, [ref]);
  steps.free(STAGE, SPILL, [old.ref]);
  await runSteps(steps.steps, ctx, { given: [[ref, hostForm(block), place]] });
  // If the row offsets are the arrays that were read, the next part will overwrite them; the part's own,
  // equal ones are kept.
  const offsets = block.offsets === read.offsets ? old.offsets : block.offsets;
  return { ...old, ref, ratings: block.ratings, offsets };
}

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
  const ref = partitionRef(dataSetName('joined'));
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
