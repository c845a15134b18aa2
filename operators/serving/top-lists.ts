import { keyCount } from '../../engine/keys/key-column.ts';
import { fallingOrder } from '../../engine/numbers/falling-order.ts';
import {
  dataSetName,
  type Partition,
  type PartitionRef,
  partitionRef,
  sharedArray,
} from '../../engine/partition.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { giveTo } from '../../engine/run/run-steps.ts';
import { type RatingBlock, rowsOfBlock, withoutValues } from '../ratings/ratings.ts';
import { announceKernels, runTask } from '../tasks/run-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';
import { type FactorModel, placeFactors, withRows } from './factor-model.ts';

/** Bounds are raised by this factor, more than the rounding error of a float32 product of 4,096 terms. */
const ROUNDING = 1 + 3e-4;

/**
 * Sorts the items of a model by descending norm ‖θ_v‖, ties by position. Since x_uᵀθ_v <= ‖x_u‖ ‖θ_v‖, a
 * search for the best items can then stop at the first item for which this bound is below the predictions
 * found so far. `order` has the original position of each item.
 */
export function itemsByNorm(model: FactorModel): {
  readonly model: FactorModel;
  readonly bounds: Partition;
  readonly order: Partition;
} {
  const { rank, items, itemFactors } = model;
  const count = keyCount(items);
  const norms = new Float32Array(count);
  for (let item = 0; item < count; item++) {
    let squares = 0;
    for (let k = item * rank; k < (item + 1) * rank; k++) squares += itemFactors[k] ** 2;
    norms[item] = Math.sqrt(squares);
  }
  const order = fallingOrder(norms);
  const values = sharedArray(Float32Array, Math.ceil(count / 8));
  for (let i = 0; i < values.length; i++) values[i] = norms[order[8 * i]] * ROUNDING;
  return {
    model: withRows(model, 'items', order),
    bounds: { layout: 'column-bounds', rows: values.length, columns: { values } },
    order: { layout: 'column-order', rows: count, columns: { values: order } },
  };
}

const STAGE = 'top-n';

/**
 * Number of users of one task. A batch of the result has n rows for each of them. A device that divides a
 * task's users itself is busy only with many; the memory of their lists limits the number.
 */
export function usersPerTask({ wholePasses }: DeviceInfo, n: number): number {
  return wholePasses ? Math.min(32_768, Math.max(256, Math.floor(2 ** 20 / n))) : 1024;
}

/** Fills the rest of a list that has fewer than n items. */
export const NO_ITEM = 0xffff_ffff;

export async function* ranges(users: number, step: number): AsyncGenerator<RowRange> {
  for (let from = 0; from < users; from += step) yield { from, to: Math.min(users, from + step) };
}

/**
 * Number of ranges of users in progress at the same time. A device that works in order needs three: it
 * searches for one while it uploads the users of the next and downloads the lists of the previous one.
 */
export function inFlight({ inOrder, parallelism }: DeviceInfo): number {
  return inOrder ? 3 : 2 * parallelism;
}

/** The items of a model on a device: the inputs that all tasks of a search have in common. */
export type PlacedItems = Pick<TaskOf<'top-n'>['inputs'], 'columnFactors' | 'bounds' | 'order'>;

/**
 * Copies the items of a model to a device, where they stay while the holdings of `ctx` are open. `bounds` and
 * `order` are given if the items are sorted by norm (see itemsByNorm).
 */
export async function placeItems(
  model: FactorModel,
  { bounds, order }: { readonly bounds?: Partition; readonly order?: Partition },
  place: Place,
  ctx: ExecutionContext,
): Promise<PlacedItems> {
  const name = dataSetName('top-items');
  const ref = (part: string) => partitionRef(`${name}/${part}`);
  const { items } = await placeFactors(model, place, ctx, ['items']);
  await giveTo(ctx, place, [
    ...(bounds ? [[ref('bounds'), bounds] as const] : []),
    ...(order ? [[ref('order'), order] as const] : []),
  ]);
  return {
    columnFactors: items,
    ...(bounds ? { bounds: ref('bounds') } : {}),
    ...(order ? { order: ref('order') } : {}),
  };
}

/** The users whose lists are searched, and the pairs that must not be in them. */
export interface ListedUsers {
  readonly model: Pick<FactorModel, 'rank' | 'userFactors'>;
  readonly n: number;
  readonly exclude: RatingBlock | undefined;
}

/**
 * Returns a function that searches for the users of a range. A device with its own memory gets the users and
 * exclusions of one range at a time, so that it uploads some while it searches for others; threads of the
 * host read all in shared memory.
 */
export async function topLists(
  items: PlacedItems,
  { model, n, exclude }: ListedUsers,
  { place, ownMemory }: DeviceInfo,
  ctx: ExecutionContext,
) {
  const { rank, userFactors } = model;
  const name = dataSetName('top');
  const ref = (part: string, partition = 0) => partitionRef(`${name}/${part}`, partition);
  const rows = (from: number, to: number): Partition => ({
    layout: 'factors',
    rows: to - from,
    columns: { values: userFactors.subarray(from * rank, to * rank) },
  });
  const users = ref('users');
  if (!ownMemory) await giveTo(ctx, place, [[users, rows(0, userFactors.length / rank)]]);
  return async ({ from, to }: RowRange): Promise<FoundLists> => {
    const [top, own, left] = [ref('lists', from), ref('users', from), ref('exclude', from)];
    const given: [PartitionRef, Partition][] = ownMemory ? [[own, rows(from, to)]] : [];
    if (ownMemory && exclude) given.push([left, withoutValues(rowsOfBlock(exclude, from, to, left))]);
    const excluded = exclude ? { exclude: ownMemory ? left : exclude.ref } : {};
    const task: TaskOf<'top-n'> = {
      kernel: 'top-n',
      inputs: { ...items, ...excluded, rowFactors: ownMemory ? own : users },
      outputs: { top },
      params: { ...(ownMemory ? { from: 0, to: to - from } : { from, to }), rank, n },
    };
    const { handed } = await runTask(ctx, STAGE, place, task, { given, handsOut: [top] });
    return { from, to, ...(handed[0].columns as Pick<FoundLists, 'items' | 'scores'>) };
  };
}

/** The lists of a range of users: n items and scores for each, best first; the rest of a list is NO_ITEM. */
export interface FoundLists extends RowRange {
  readonly items: Uint32Array;
  readonly scores: Float32Array;
}

/**
 * Makes a device with its own memory compile the kernels of a search while the host still prepares the search
 * and uploads its inputs. Nothing waits for this. If it fails, the search compiles its kernels itself.
 */
export function announceSearch(
  search: 'top-n' | 'rank-listed',
  excluding: boolean,
  { place, ownMemory }: DeviceInfo,
  ctx: ExecutionContext,
): void {
  if (!ownMemory) return;
  announceKernels('compile-search', { search, excluding }, place, ctx).catch(() => undefined);
}
