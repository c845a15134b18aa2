import { type Partition, partitionBytes, type PartitionRef } from '../../engine/partition.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { deviceAt, hostDevice } from '../../engine/run/devices.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { hostForm } from './rating-block.ts';
import type { ColumnBlock, Ratings } from './ratings.ts';

const LEAVE = 'leave-ratings';

/** Number of bytes that are freed before the garbage collector runs. */
const LEAVE_BYTES = 2 ** 32;

/**
 * Frees the ratings in host memory for the rest of a run, once only a device needs them. The row offsets
 * stay. `refs`: their names in host memory. They are freed in pieces of LEAVE_BYTES with a garbage collection
 * after each, since the system takes seconds to reclaim gigabytes.
 */
export async function leaveRatings(
  { parts }: Ratings,
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
 * Replaces a block's ratings by empty arrays. Returns the partitions to free: one in host memory, and one at
 * `place` for the CPU's threads, which hold references to the same arrays.
 */
function leftBy(held: ColumnBlock, place: Place): [ref: PartitionRef, partition: Partition, at: Place][] {
  const { block } = held;
  held.block = { ...block, indices: new Uint32Array(0), values: new Float32Array(0) };
  return [
    [block.ref, { ...hostForm(block), reused: true }, HOST],
    [block.ref, hostForm(block), place],
  ];
}
