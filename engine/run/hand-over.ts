import type { ExecutionContext } from './context.ts';
import type { Partition, PartitionRef } from '../partition.ts';
import type { Place } from '../plan/place.ts';
import { runSteps } from './run-steps.ts';
import { StepList } from './step-list.ts';

/** Stores partitions of this thread at a place. Only matrices are copied, to the place's own memory. */
export async function giveTo(
  ctx: ExecutionContext,
  at: Place,
  partitions: readonly (readonly [PartitionRef, Partition])[],
): Promise<void> {
  await runSteps([], ctx, { given: partitions.map(([ref, partition]) => [ref, partition, at]) });
}

/** Frees partitions at a place. */
export async function freeAt(
  ctx: ExecutionContext,
  stage: string,
  at: Place,
  refs: readonly PartitionRef[],
): Promise<void> {
  const steps = new StepList({});
  steps.free(stage, at, refs);
  await runSteps(steps.steps, ctx);
}

/** Fetches partitions from a place to this thread, in the order of their names, and releases them there. */
export async function takeFrom(
  ctx: ExecutionContext,
  stage: string,
  at: Place,
  refs: readonly PartitionRef[],
): Promise<Partition[]> {
  const steps = new StepList({});
  for (const ref of refs) steps.handOut(stage, ref, at);
  steps.free(stage, at, refs);
  return (await runSteps(steps.steps, ctx)).handed;
}
