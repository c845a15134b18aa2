import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import { type BoundPlan, dataSetOf } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { Stage } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevices } from '../../engine/run/devices.ts';
import { type Given, runSteps, freeAt } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { leaveRatings } from '../ratings/parts-in-files.ts';
import { hostForm, type RatingBlock, type RatingSides } from '../ratings/ratings.ts';
import { contracts, type RowsTask, type KernelChoice } from '../tasks/tasks.ts';
import { ALS } from './bind.ts';
import type { AlsData, AlsStart } from './factors.ts';
import { otherSide, type Side, sides } from './plan/problem.ts';
import { kernelOf } from './plan/stages.ts';

/** A partition to upload, and the task that will read its rows. */
interface Upload {
  readonly data: PartitionRef;
  readonly transposeOf?: PartitionRef | undefined;
  readonly rows?: RowsTask | undefined;
}

async function upload(
  stage: string,
  place: Place,
  uploads: readonly Upload[],
  ctx: ExecutionContext,
  given: readonly Given[] = [],
): Promise<void> {
  const steps = new StepList(contracts);
  for (const { data, transposeOf, rows } of uploads)
    steps.task(stage, place, {
      kernel: 'upload',
      inputs: { data, ...(transposeOf && { transposeOf }) },
      outputs: {},
      params: rows === undefined ? {} : { rows },
    });
  await runSteps(steps.steps, ctx, { given });
}

/**
 * Uploads a sorted block of ratings to the first device before training, and prepares it there for the task
 * `rows` that will read it. Later steps find the block on the device. `of`: the block of which this one is
 * the transpose, uploaded before; the device copies the values from it.
 */
export async function placeBlock(
  block: RatingBlock,
  rows: RowsTask | undefined,
  of: RatingBlock | undefined,
  ctx: ExecutionContext,
): Promise<readonly PartitionRef[]> {
  const [{ info }] = computeDevices(ctx.executor);
  const given: Given = [block.ref, hostForm(block), info.place];
  await upload('place-ratings', info.place, [{ data: block.ref, transposeOf: of?.ref, rows }], ctx, [given]);
  return [block.ref];
}

/**
 * Uploads all parts of a side's ratings to a device that does not have them yet, and prepares them there for
 * the tasks that will read them.
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
  const uploads = refs.map((data, block) => {
    const columns = vertical === 1 ? all : fixed[block % vertical].rows;
    return { data, rows: rowsTaskOf(bound.phases.round, side, columns) };
  });
  await upload('place-ratings', place, uploads, ctx);
}

/**
 * Uploads the users' factors of a given start to the first device. Returns the start with `name`, by which a
 * plan finds them there.
 */
export async function placeStart(
  { users, items }: AlsStart,
  rows: number,
  ctx: ExecutionContext,
): Promise<AlsStart & { readonly name: string }> {
  const [{ info }] = computeDevices(ctx.executor);
  const name = dataSetName(ALS);
  const ref = startRef(name);
  const values = { layout: 'factors', rows, columns: { values: users.values } };
  await upload('initialize', info.place, [{ data: ref }], ctx, [[ref, values, info.place]]);
  return { name, users, items };
}

/** Name of the partition that placeStart uploads. */
export function startRef(name: string): PartitionRef {
  return { name: `${name}/users`, partition: 0, version: 0 };
}

/**
 * True if a plan keeps all ratings of both sides at a device for the whole run. `whole`: as one part per
 * side; `in parts`: in any number of parts.
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

/** Frees partitions that were uploaded to the first device but that the plan does not use there. */
export async function freePlaced(refs: readonly PartitionRef[], ctx: ExecutionContext): Promise<void> {
  const [{ info }] = computeDevices(ctx.executor);
  await freeAt(ctx, 'place-ratings', info.place, refs);
}

/** Names of the blocks of ratings in memory, as devices know them. */
export function blockRefs({ byUser, byItem }: RatingSides): PartitionRef[] {
  return [byUser, byItem].flatMap(({ parts }) =>
    parts.flatMap(({ blocks = [] }) => blocks.map(({ block }) => block.ref)),
  );
}

/**
 * Frees the host memory of ratings whose parts stay on the only device for the whole run. This is done after
 * the start, whose steps upload the ratings and make the lists of their rows. Nothing reads the ratings in
 * host memory again: if that device is lost, the run ends with the last copy of the factors.
 */
export async function leavePlaced(
  { byUser, byItem }: AlsData,
  bound: BoundPlan,
  [{ place, ownMemory }, ...others]: readonly DeviceInfo[],
  ctx: ExecutionContext,
): Promise<void> {
  if (!ownMemory || others.length > 0 || !staysAt(bound, place, 'in parts')) return;
  if (byUser.parts.length === 1 && byItem.parts.length === 1) return;
  await Promise.all(sides.map((side) => placeRows(bound, side, place, ctx)));
  await leaveRatings(byUser, bound.given['ratings-by-user'], place, ctx);
  await leaveRatings(byItem, bound.given['ratings-by-item'], place, ctx);
}

const kernels: readonly string[] = [
  'update',
  'update-implicit',
  'normal-equations',
] satisfies RowsTask['kernel'][];

/**
 * Finds the task of a round (one iteration's stages) that reads the ratings sorted by `side` row by row, so
 * that a device can prepare for it. `choice` is its kernel if the plan has none. Returns undefined if neither
 * has one. `columns`: number of rows of the other side.
 */
export function rowsTaskOf(
  round: readonly Stage[],
  side: Side,
  columns: number,
  choice?: KernelChoice,
): RowsTask | undefined {
  const ratings = side === 'users' ? 'ratings-by-user' : 'ratings-by-item';
  for (const { work } of round) {
    const found =
      work.kind === 'tasks' || work.kind === 'blocks'
        ? work.tasks.find(({ kernel, uses }) => kernels.includes(kernel) && uses.block === ratings)
        : undefined;
    if (found === undefined) continue;
    const params = { ...found.params, ...kernelOf(choice) };
    // The plan already has the kernel among its tasks' parameters.
    return 'variant' in params
      ? ({
          kernel: found.kernel,
          params,
          biases: found.uses.fixedBias !== undefined,
          columns,
        } as unknown as RowsTask)
      : undefined;
  }
  return undefined;
}
