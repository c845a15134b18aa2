import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';

/**
 * One allocation for the id numbers and ratings of all rows, if their number is known before they are read:
 * `users` and `items` Uint32[rows], `values` Float32[rows]. Threads fill it chunk by chunk. Once the chunks
 * are sorted by user, the block by item is made in the same memory. New memory would cost a page fault for
 * every 1,024 numbers, and the released memory a garbage collection in every thread.
 */
export interface PairRoom {
  readonly ref: PartitionRef;
  readonly columns: PairColumns;
}

type PairColumns = {
  readonly users: Uint32Array;
  readonly items: Uint32Array;
  readonly values: Float32Array;
};

const LAYOUT = 'pair-room';

export async function roomForPairs(
  rows: number,
  ref: PartitionRef,
  ctx: ExecutionContext,
): Promise<PairRoom> {
  const columns = {
    users: sharedArray(Uint32Array, rows),
    items: sharedArray(Uint32Array, rows),
    values: sharedArray(Float32Array, rows),
  };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[ref, { layout: LAYOUT, rows, columns }]]);
  return { ref, columns };
}

/**
 * Frees the memory. If `reused`, a block has taken over the arrays `users` and `values`, so only `items`
 * becomes garbage.
 */
export async function leaveRoom(
  { ref, columns: { items, ...kept } }: PairRoom,
  reused: boolean,
  ctx: ExecutionContext,
): Promise<void> {
  const { place } = hostDevice(ctx.executor).info;
  const garbage: Partition = {
    layout: LAYOUT,
    rows: items.length,
    columns: reused ? { items } : { items, ...kept },
  };
  const steps = new StepList({});
  steps.free('rating-blocks', place, [ref]);
  await runSteps(steps.steps, ctx, { given: [[ref, garbage, place]] });
}
