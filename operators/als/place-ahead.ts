import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevices } from '../../engine/run/devices.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import { type BoundPlan, dataSetOf } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { Place } from '../../engine/plan/place.ts';
import { hostForm, type RatingBlock } from '../ratings/rating-block.ts';
import { type RatingSides, soleBlock } from '../ratings/ratings.ts';
import { contracts, type RowsTask } from '../tasks/tasks.ts';
import type { AlsStart } from './bind/als-data.ts';
import { ALS } from './bind/bind-als.ts';
import { otherSide, type Side } from './plan/grid.ts';
import { rowsTaskOf } from './plan/rows-task.ts';

/**
 * Sends a sorted block to the first device while others are sorted, and has its rows dealt to the kernels of
 * its task. The steps that place it there find it; see freeTimed. Nothing waits for it, and where it fails
 * the steps send it again. `of`: the block that it was transposed from, which was sent before.
 *
 */
export function placeAhead(
  block: RatingBlock,
  rows: RowsTask | undefined,
  of: RatingBlock | undefined,
  ctx: ExecutionContext,
): void {
  const [{ info }] = computeDevices(ctx.executor);
  const steps = new StepList(contracts);
  steps.task('place-ratings', info.place, {
    kernel: 'upload',
    inputs: { data: block.ref, ...(of && { transposeOf: of.ref }) },
    outputs: {},
    params: rows === undefined ? {} : { rows },
  });
  runSteps(steps.steps, ctx, { given: [[block.ref, hostForm(block), info.place]] }).catch(() => undefined);
}

/**
 * Brings the ratings of a side in parts to a device, with the lists of their rows, unless that was done
 * ahead.
 */
export async function placeRows(
  bound: BoundPlan,
  side: Side,
  place: Place,
  ctx: ExecutionContext,
): Promise<void> {
  const refs = bound.given[side === 'users' ? 'ratings-by-user' : 'ratings-by-item'];
  const [solved, fixed] = [side, otherSide[side]].map((name) => dataSetOf(bound, name).parts);
  const vertical = refs.length / solved.length;
  const all = fixed.reduce((sum, { rows }) => sum + rows, 0);
  const steps = new StepList(contracts);
  for (const [block, ref] of refs.entries()) {
    const rows = rowsTaskOf(bound.phases.round, side, vertical === 1 ? all : fixed[block % vertical].rows);
    steps.task('place-ratings', place, {
      kernel: 'upload',
      inputs: { data: ref },
      outputs: {},
      params: rows === undefined ? {} : { rows },
    });
  }
  await runSteps(steps.steps, ctx);
}

/**
 * Sends the users' factors of a start to the first device as well, under the name that the start then has.
 * Nothing waits for it.
 */
export function placeStart({ users, items }: AlsStart, rows: number, ctx: ExecutionContext): AlsStart {
  const [{ info }] = computeDevices(ctx.executor);
  const name = dataSetName(ALS);
  const ref = startRef(name);
  const steps = new StepList(contracts);
  steps.task('initialize', info.place, { kernel: 'upload', inputs: { data: ref }, outputs: {}, params: {} });
  runSteps(steps.steps, ctx, {
    given: [[ref, { layout: 'factors', rows, columns: { values: users.values } }, info.place]],
  }).catch(() => undefined);
  return { name, users, items };
}

/** The part of a start that placeStart sends. */
function startRef(name: string): PartitionRef {
  return { name: `${name}/users`, partition: 0, version: 0 };
}

/**
 * True where a plan has the ratings of both sides at a device for the whole run: whole, or in parts that are
 * all there.
 */
export function staysAt(
  { datasets }: Pick<PhysicalPlan, 'datasets'>,
  place: Place,
  how: 'whole' | 'in parts',
): boolean {
  return datasets.every(
    ({ role, parts }) =>
      role !== 'ratings' ||
      ((how === 'in parts' || parts.length === 1) && parts.every(({ at }) => at.includes(place))),
  );
}

/**
 * Frees the blocks that were sent ahead, or that kernels were timed on, where the plan has them in parts or
 * brings them for as long as they are used.
 */
export async function freeTimed(
  { byUser, byItem }: RatingSides,
  plan: PhysicalPlan,
  ctx: ExecutionContext,
): Promise<void> {
  const [{ info }] = computeDevices(ctx.executor);
  const inBlocks = soleBlock(byUser) !== undefined && soleBlock(byItem) !== undefined;
  if (info.choosesKernels && inBlocks && !staysAt(plan, info.place, 'whole'))
    await freeAhead({ byUser, byItem }, ctx);
}

/** Frees blocks that were sent ahead, and a start. */
export async function freeAhead(
  { byUser, byItem }: RatingSides,
  ctx: ExecutionContext,
  start?: AlsStart,
): Promise<void> {
  const [{ info }] = computeDevices(ctx.executor);
  const steps = new StepList(contracts);
  steps.free('place-ratings', info.place, [
    ...[byUser, byItem].flatMap(({ parts }) =>
      parts.flatMap(({ blocks = [] }) => blocks.map(({ block }) => block.ref)),
    ),
    ...(start?.name === undefined ? [] : [startRef(start.name)]),
  ]);
  await runSteps(steps.steps, ctx);
}
