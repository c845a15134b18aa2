import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevices } from '../../engine/run/devices.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import { hostForm, type RatingBlock } from '../ratings/rating-block.ts';
import { isInParts, type SortedRatings } from '../ratings/spilled-ratings.ts';
import { contracts } from '../tasks/tasks.ts';
import type { AlsStart } from './bind/als-data.ts';
import { ALS } from './bind/bind-als.ts';
import type { AlsChoices } from './kernel-choices.ts';
import type { AlsParams } from './params.ts';
import { regularizationOf } from './plan/half-iteration.ts';
import { chooseSolver, mostSteps } from './solver-choice.ts';

/**
 * Sends a sorted block to the first device while the other is sorted, and has its rows dealt to the kernels that will probably be chosen for the side. The steps that place it there find
 * it; see freeTimed. Nothing waits for it, and where it fails the steps send it again.
 */
export function placeAhead(block: RatingBlock, side: 'users' | 'items', { columns, params, choices }: { readonly columns: number; readonly params: AlsParams; readonly choices: AlsChoices | undefined }, ctx: ExecutionContext): void {
  const [{ info }] = computeDevices(ctx.executor);
  const { rank, regOffset: offset, biases, nonnegative } = params;
  const { cgBelow } = chooseSolver(params, 'gpu');
  const rows = choices && { ...regularizationOf(params, side), rank, offset, cgBelow, cgSteps: mostSteps(params), nonnegative, variant: choices[side].variant, biases, columns };
  const steps = new StepList(contracts);
  steps.move('place-ratings', block.ref, HOST, info.place);
  steps.task('place-ratings', info.place, { kernel: 'upload', inputs: { data: block.ref }, outputs: {}, params: rows === undefined ? {} : { rows } });
  runSteps(steps.steps, ctx, { given: [[block.ref, hostForm(block)]] }).catch(() => undefined);
}

/** Sends the users' factors of a start to the first device as well, under the name that the start then has. Nothing waits for it. */
export function placeStart({ users, items }: AlsStart, rows: number, ctx: ExecutionContext): AlsStart {
  const [{ info }] = computeDevices(ctx.executor);
  const name = dataSetName(ALS);
  const ref = startRef(name);
  const steps = new StepList(contracts);
  steps.move('initialize', ref, HOST, info.place);
  steps.task('initialize', info.place, { kernel: 'upload', inputs: { data: ref }, outputs: {}, params: {} });
  runSteps(steps.steps, ctx, { given: [[ref, { layout: 'factors', rows, columns: { values: users.values } }]] }).catch(() => undefined);
  return { name, users, items };
}

/** The part of a start that placeStart sends. */
function startRef(name: string): PartitionRef {
  return { name: `${name}/users`, partition: 0, version: 0 };
}

/** True where a plan has the ratings of both sides whole at a device for the whole run. */
export function staysWhole({ datasets }: PhysicalPlan, place: Place): boolean {
  return datasets.every(({ name, parts }) => !name.startsWith('ratings-by-') || (parts.length === 1 && parts[0].at.includes(place)));
}

/** Frees the blocks that were sent ahead, or that kernels were timed on, where the plan has them in parts or brings them for as long as they are used. */
export async function freeTimed(sides: Readonly<Record<'byUser' | 'byItem', SortedRatings>>, plan: PhysicalPlan, ctx: ExecutionContext): Promise<void> {
  const [{ info }] = computeDevices(ctx.executor);
  if (info.choosesKernels && !staysWhole(plan, info.place)) await freeAhead([sides.byUser, sides.byItem], ctx);
}

/** Frees blocks that were sent ahead, and a start. */
export async function freeAhead(ratings: readonly SortedRatings[], ctx: ExecutionContext, start?: AlsStart): Promise<void> {
  const [{ info }] = computeDevices(ctx.executor);
  const steps = new StepList(contracts);
  steps.free('place-ratings', info.place, [...ratings.flatMap((one) => (isInParts(one) ? [] : [one.ref])), ...(start?.name === undefined ? [] : [startRef(start.name)])]);
  await runSteps(steps.steps, ctx);
}
