import { type Partition, partitionBytes, type PartitionRef } from '../../engine/partition.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { deviceAt, hostDevice } from '../../engine/run/devices.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { hostForm } from './rating-block.ts';
import type { ColumnBlock, Ratings } from './ratings.ts';

const LEAVE = 'leave-ratings';

/** Bytes of ratings that leave host memory at a time. */
const LEAVE_BYTES = 2 ** 32;

/**
 * Leaves ratings in memory to a device alone for the rest of a run: host memory keeps their row pointers.
 * `refs`: their names there. The system takes seconds to take gigabytes back, so they are freed piece by
 * piece, in few collections of garbage.
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
