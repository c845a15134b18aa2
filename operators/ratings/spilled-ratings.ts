import type { PartitionRef } from '../../engine/partition.ts';
import { SPILL } from '../../engine/plan/place.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { blockOf, hostForm, type RatingBlock } from './rating-block.ts';
import { joinParts } from './sorting/join-parts.ts';
import type { RatingPart } from './sorting/rating-parts.ts';

const STAGE = 'rating-parts';

/** Rows of a block, whose ratings may lie in a file. */
export type RatedRows = Pick<RatingBlock, 'ref' | 'rows' | 'ratings' | 'offsets'>;

/** The rows [from, from + rows) of one side, numbered from 0; their ratings lie at the place `spill`, under the part's name. */
export interface SpilledPart extends RatedRows {
  readonly from: number;
  /** The slices of a pass over all ratings that are in this part. */
  readonly slices: readonly RowRange[];
}

/** Ratings in compressed rows that memory does not hold: parts of adjacent rows in files. */
export interface SpilledRatings {
  readonly rows: number;
  readonly ratings: number;
  readonly parts: readonly SpilledPart[];
}

/** Ratings sorted into the rows of one side: one block in memory, or parts in files. */
export type SortedRatings = RatingBlock | SpilledRatings;

export function isSpilled(ratings: SortedRatings): ratings is SpilledRatings {
  return 'parts' in ratings;
}

/** The rows in order, part by part; a block in memory is one part. */
export function rowParts(ratings: SortedRatings): readonly (RatedRows & { readonly from: number })[] {
  return isSpilled(ratings) ? ratings.parts : [{ ...ratings, from: 0 }];
}

/** Ratings of a row. */
export function lengthOfRow(ratings: SortedRatings, row: number): number {
  const part = rowParts(ratings).find(({ from, rows }) => row < from + rows);
  return part === undefined ? 0 : part.offsets[row - part.from + 1] - part.offsets[row - part.from];
}

/** The ratings in memory, part by part in the order of rows: of those in files only the part at hand, whose arrays the next part overwrites. */
export async function* blocksOf(ratings: SortedRatings, ctx: ExecutionContext): AsyncGenerator<RatingPart, void> {
  if (!isSpilled(ratings)) {
    yield { from: 0, block: ratings };
    return;
  }
  const { place } = hostDevice(ctx.executor).info;
  for (const { from, ref } of ratings.parts) {
    const reading = new StepList({});
    reading.move(STAGE, ref, SPILL, place);
    reading.handOut(STAGE, ref, place);
    const { handed } = await runSteps(reading.steps, ctx);
    try {
      yield { from, block: blockOf(ref, handed[0]) };
    } finally {
      const freeing = new StepList({});
      freeing.free(STAGE, place, [ref]);
      await runSteps(freeing.steps, ctx);
    }
  }
}

/** All ratings as one block. */
export async function inMemory(ratings: SortedRatings, ctx: ExecutionContext): Promise<RatingBlock> {
  return isSpilled(ratings) ? joinParts(blocksOf(ratings, ctx), ratings.rows, ratings.ratings, ctx) : ratings;
}

/** Writes parts to files as they come, and frees them at the CPU. `slices`: of all rows, in order; a part ends where a slice ends. */
export async function spillParts(parts: AsyncIterable<RatingPart>, slices: readonly RowRange[], name: string, ctx: ExecutionContext): Promise<SpilledRatings> {
  const { place } = hostDevice(ctx.executor).info;
  const spilled: SpilledPart[] = [];
  for await (const { from, block } of parts) {
    const ref: PartitionRef = { name, partition: spilled.length, version: 0 };
    const steps = new StepList({});
    steps.move(STAGE, block.ref, place, SPILL, { as: ref });
    steps.free(STAGE, place, [block.ref]);
    await runSteps(steps.steps, ctx);
    const own = slices.filter((slice) => slice.from >= from && slice.to <= from + block.rows).map((slice) => ({ from: slice.from - from, to: slice.to - from }));
    spilled.push({ ref, from, rows: block.rows, ratings: block.ratings, offsets: block.offsets, slices: own });
  }
  return { rows: spilled.reduce((sum, { rows }) => sum + rows, 0), ratings: spilled.reduce((sum, { ratings }) => sum + ratings, 0), parts: spilled };
}

/** The same parts with other ratings of their rows; those of before are removed. */
export async function replaceParts(ratings: SpilledRatings, change: (part: RatingPart) => RatingBlock, ctx: ExecutionContext): Promise<SpilledRatings> {
  const { place } = hostDevice(ctx.executor).info;
  const parts: SpilledPart[] = [];
  for await (const part of blocksOf(ratings, ctx)) {
    const old = ratings.parts[parts.length];
    const block = change(part);
    const ref: PartitionRef = { ...old.ref, version: old.ref.version + 1 };
    const steps = new StepList({});
    steps.move(STAGE, ref, place, SPILL);
    steps.free(STAGE, place, [ref]);
    steps.free(STAGE, SPILL, [old.ref]);
    await runSteps(steps.steps, ctx, { given: [[ref, hostForm(block), place]] });
    // Those of the part that was read are overwritten by the next.
    const offsets = block.offsets === part.block.offsets ? old.offsets : block.offsets;
    parts.push({ ...old, ref, ratings: block.ratings, offsets });
  }
  return { ...ratings, ratings: parts.reduce((sum, { ratings: own }) => sum + own, 0), parts };
}

