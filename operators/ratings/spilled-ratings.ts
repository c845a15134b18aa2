import { type Partition, partitionBytes, type PartitionRef } from '../../engine/partition.ts';
import { HOST, type Place, SPILL } from '../../engine/plan/place.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { deviceAt, hostDevice } from '../../engine/run/devices.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { formatCount } from '../../engine/format.ts';
import { CapacityError } from '../../engine/errors.ts';
import { blockLimit } from '../planner/sizes.ts';
import { blockOf, hostForm, type RatingBlock, type RowPointers } from './rating-block.ts';
import { joinParts } from './sorting/join-parts.ts';
import type { RatingPart } from './sorting/rating-parts.ts';

const STAGE = 'rating-parts';
const LEAVE = 'leave-ratings';

/** Rows of ratings that may lie in a file, or in several blocks, whose pointers together are float64. */
export type RatedRows = Pick<RatingBlock, 'ref' | 'ratings'> & RowPointers;

/** The ratings of some rows in a run of columns, which are numbered from 0. */
export interface ColumnBlock {
  readonly firstColumn: number;
  /** Without its ratings once a device alone has them: see leaveRatings. */
  block: RatingBlock;
}

/** The rows [from, from + rows) of one side, numbered from 0. */
export interface SortedPart extends RatedRows {
  readonly from: number;
  /**
   * The ratings in memory, side by side by their columns. Absent: they lie at the place `spill`, under the
   * part's name.
   */
  readonly blocks?: readonly ColumnBlock[];
  /** The slices of a pass over all ratings that are in this part, where parts are those of a pass. */
  readonly slices?: readonly RowRange[];
}

/** Ratings in compressed rows that no block holds, or no memory: parts of adjacent rows. */
export interface RatingsInParts {
  readonly rows: number;
  readonly ratings: number;
  readonly parts: readonly SortedPart[];
}

/** Ratings sorted into the rows of one side: one block in memory, or parts. */
export type SortedRatings = RatingBlock | RatingsInParts;

export function isInParts(ratings: SortedRatings): ratings is RatingsInParts {
  return 'parts' in ratings;
}

export function ofParts(parts: readonly SortedPart[]): RatingsInParts {
  return {
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    ratings: parts.reduce((sum, { ratings }) => sum + ratings, 0),
    parts,
  };
}

/** The rows of blocks that stand side by side. */
export function partOfBlocks(
  from: number,
  blocks: readonly ColumnBlock[],
  more: Pick<SortedPart, 'slices'> = {},
): SortedPart {
  const [{ block }] = blocks;
  if (blocks.length === 1)
    return {
      ...more,
      from,
      blocks,
      ref: block.ref,
      rows: block.rows,
      ratings: block.ratings,
      offsets: block.offsets,
    };
  const offsets = new Float64Array(block.rows + 1);
  for (const {
    block: { offsets: own },
  } of blocks)
    for (let row = 0; row <= block.rows; row++) offsets[row] += own[row];
  return { ...more, from, blocks, ref: block.ref, rows: block.rows, ratings: offsets[block.rows], offsets };
}

/** The rows in order, part by part; a block in memory is one part. */
export function rowParts(ratings: SortedRatings): readonly (RatedRows & { readonly from: number })[] {
  return isInParts(ratings) ? ratings.parts : [{ ...ratings, from: 0 }];
}

/** Ratings of a row. */
export function lengthOfRow(ratings: SortedRatings, row: number): number {
  const part = rowParts(ratings).find(({ from, rows }) => row < from + rows);
  return part === undefined ? 0 : part.offsets[row - part.from + 1] - part.offsets[row - part.from];
}

/** Bytes of ratings that leave host memory at a time. */
const LEAVE_BYTES = 2 ** 32;

/**
 * Leaves ratings in parts in memory to a device alone for the rest of a run: host memory keeps their row
 * pointers. `refs`: their names there. The system takes seconds to take gigabytes back, so they go by and by,
 * in few collections of garbage.
 *
 */
export async function leaveRatings(
  { parts }: RatingsInParts,
  refs: readonly PartitionRef[],
  at: Place,
  ctx: ExecutionContext,
): Promise<void> {
  await deviceAt(ctx.executor, at).leaveHost?.(refs);
  const host = hostDevice(ctx.executor);
  const blocks = parts.flatMap(({ blocks: own = [] }) => own);
  while (blocks.length > 0) {
    const steps = new StepList({});
    const leaving: ReturnType<typeof leftBy> = [];
    for (
      let bytes = 0;
      bytes < LEAVE_BYTES && blocks.length > 0;
      bytes += partitionBytes(leaving[leaving.length - 1][1])
    )
      leaving.push(...leftBy(blocks.splice(0, 1)[0], host.info.place));
    for (const [ref, , place] of leaving) steps.free(LEAVE, place, [ref]);
    await runSteps(steps.steps, ctx, { given: leaving.splice(0) });
    await host.trim();
  }
  const steps = new StepList({});
  steps.free(LEAVE, HOST, refs);
  await runSteps(steps.steps, ctx);
}

/**
 * Takes the ratings from a block: as they are known in host memory, and to the threads of the CPU at `place`,
 * which have seen them and collect them together.
 */
function leftBy(held: ColumnBlock, place: Place): [ref: PartitionRef, partition: Partition, at: Place][] {
  const { block } = held;
  held.block = { ...block, indices: new Uint32Array(0), values: new Float32Array(0) };
  return [
    [block.ref, { ...hostForm(block), reused: true }, HOST],
    [block.ref, hostForm(block), place],
  ];
}

/** Rows and columns of ratings that are in memory. */
export interface HeldBlock extends ColumnBlock {
  /** Position of the block's first row. */
  readonly from: number;
}

/**
 * The ratings in memory, part by part in the order of rows, of a part block by block in the order of columns:
 * of those in files only the part at hand, whose arrays the next part overwrites.
 *
 */
export async function* blocksOf(
  ratings: SortedRatings,
  ctx: ExecutionContext,
): AsyncGenerator<HeldBlock, void> {
  if (!isInParts(ratings)) {
    yield { from: 0, firstColumn: 0, block: ratings };
    return;
  }
  for (const part of ratings.parts) {
    if (part.blocks === undefined) yield* blockInFile(part, ctx);
    else for (const block of part.blocks) yield { from: part.from, ...block };
  }
}

/** The same of ratings none of which lie in files. */
export function heldBlocks(ratings: SortedRatings): readonly HeldBlock[] {
  if (!isInParts(ratings)) return [{ from: 0, firstColumn: 0, block: ratings }];
  return ratings.parts.flatMap(({ from, blocks }) => {
    if (blocks === undefined) throw new Error('a part of the ratings lies in a file');
    return blocks.map((block) => ({ from, ...block }));
  });
}

async function* blockInFile(
  { from, ref }: SortedPart,
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

/** All ratings as one block. Throws CapacityError where a block does not have so many. */
export async function inMemory(ratings: SortedRatings, ctx: ExecutionContext): Promise<RatingBlock> {
  if (!isInParts(ratings)) return ratings;
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
 * Writes parts to files as they come, and frees them at the CPU. `slices`: of all rows, in order; a part ends
 * where a slice ends.
 */
export async function spillParts(
  parts: AsyncIterable<RatingPart>,
  slices: readonly RowRange[],
  name: string,
  ctx: ExecutionContext,
): Promise<RatingsInParts> {
  const { place } = hostDevice(ctx.executor).info;
  const spilled: SortedPart[] = [];
  for await (const { from, block } of parts) {
    const ref: PartitionRef = { name, partition: spilled.length, version: 0 };
    const steps = new StepList({});
    steps.move(STAGE, block.ref, place, SPILL, { as: ref });
    steps.free(STAGE, place, [block.ref]);
    await runSteps(steps.steps, ctx);
    const own = slices
      .filter((slice) => slice.from >= from && slice.to <= from + block.rows)
      .map((slice) => ({ from: slice.from - from, to: slice.to - from }));
    spilled.push({
      ref,
      from,
      rows: block.rows,
      ratings: block.ratings,
      offsets: block.offsets,
      slices: own,
    });
  }
  return ofParts(spilled);
}

/** The same parts with other ratings of their rows; those of before are removed from files. */
export async function replaceParts(
  ratings: RatingsInParts,
  change: (block: HeldBlock) => RatingBlock,
  ctx: ExecutionContext,
): Promise<RatingsInParts> {
  const parts: SortedPart[] = [];
  for (const part of ratings.parts) {
    const { from, blocks } = part;
    if (blocks === undefined)
      for await (const held of blockInFile(part, ctx))
        parts.push(await replacedInFile(part, held.block, change(held), ctx));
    else
      parts.push(
        partOfBlocks(
          from,
          blocks.map((one) => ({ firstColumn: one.firstColumn, block: change({ from, ...one }) })),
        ),
      );
  }
  return ofParts(parts);
}

async function replacedInFile(
  old: SortedPart,
  read: RatingBlock,
  block: RatingBlock,
  ctx: ExecutionContext,
): Promise<SortedPart> {
  const { place } = hostDevice(ctx.executor).info;
  const ref: PartitionRef = { ...old.ref, version: old.ref.version + 1 };
  const steps = new StepList({});
  steps.move(STAGE, ref, place, SPILL);
  steps.free(STAGE, place, [ref]);
  steps.free(STAGE, SPILL, [old.ref]);
  await runSteps(steps.steps, ctx, { given: [[ref, hostForm(block), place]] });
  // Those of the part that was read are overwritten by the next.
  const offsets = block.offsets === read.offsets ? old.offsets : block.offsets;
  return { ...old, ref, ratings: block.ratings, offsets };
}
