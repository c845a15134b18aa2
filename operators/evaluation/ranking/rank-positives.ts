import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { type Partition, type PartitionRef, dataSetName } from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import { hostForm, type RatingBlock, rowsOfBlock } from '../../ratings/rating-block.ts';
import { type FactorModel, placeFactors } from '../../serving/factor-model.ts';
import { contracts, type TaskOf } from '../../tasks/tasks.ts';

const STAGE = 'rank-listed';

/** Users of one task. A device that shares rows out itself needs many to be busy. */
function usersPerTask({ wholePasses }: DeviceInfo): number {
  return wholePasses ? 65_536 : 2048;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * The place of each positive in its user's ranking of all items that are not excluded: the number of items with a higher x_uᵀθ_v, or
 * an equal one and a lower id, from 0. In the order of the block's entries: Uint32[positives.ratings]. Needs no memory of m x n.
 * In place of a place from `depth` on (default: none) any number of at least `depth`.
 * `positives` and `exclude` are blocks over the users and items of the model; no pair is in both.
 */
export async function rankPositives(model: FactorModel, positives: RatingBlock, exclude: RatingBlock | undefined, ctx: ExecutionContext, depth?: number): Promise<Uint32Array> {
  const places = new Uint32Array(positives.ratings);
  const { info } = computeDevice(ctx.executor);
  const phase = startPhase(ctx.events, 'rank', 'users', positives.rows);
  await Holdings.within(ctx, async (held) => {
    const rank = await ranker(model, positives, exclude, depth, info, held);
    for await (const { range, values } of mapOrdered(ranges(positives, usersPerTask(info)), info.inOrder ? 3 : 2 * info.parallelism, rank)) {
      places.set(values, positives.offsets[range.from]);
      phase.progress(range.to);
    }
  });
  phase.end(positives.rows);
  return places;
}

/** Ranges of users, without those that have no positive. */
async function* ranges({ rows, offsets }: RatingBlock, step: number): AsyncGenerator<Range> {
  for (let from = 0; from < rows; from += step) {
    const to = Math.min(rows, from + step);
    if (offsets[to] > offsets[from]) yield { from, to };
  }
}

/** The task for a range of users. A device with memory of its own is given each range's users and pairs when it is their turn; threads of the host are given all at once. */
async function ranker(model: FactorModel, positives: RatingBlock, exclude: RatingBlock | undefined, depth: number | undefined, { place, ownMemory }: DeviceInfo, ctx: ExecutionContext) {
  const { rank, userFactors } = model;
  const name = dataSetName('ranking');
  const ref = (part: string, partition = 0): PartitionRef => ({ name: `${name}/${part}`, partition, version: 0 });
  const { users, items } = await placeFactors(model, place, ctx, ownMemory ? ['items'] : ['users', 'items']);
  const pairs = { listed: positives, ...(exclude ? { exclude } : {}) };
  if (!ownMemory) await giveTo(ctx, place, Object.entries(pairs).map(([part, block]) => [ref(part), withoutValues(block)]));
  return async (range: Range) => {
    const { from, to } = range;
    const partition = ownMemory ? from : 0;
    const output = ref('places', from);
    const given: Given[] = [];
    const own = ref('users', from);
    if (ownMemory) {
      given.push([own, { layout: 'factors', rows: to - from, columns: { values: userFactors.subarray(from * rank, to * rank) } }, place]);
      for (const [part, block] of Object.entries(pairs)) given.push([ref(part, partition), withoutValues(rowsOfBlock(block, from, to, ref(part, partition))), place]);
    }
    const rows = ownMemory ? { from: 0, to: to - from } : { from, to };
    const inputs = { rowFactors: ownMemory ? own : users, columnFactors: items, listed: ref('listed', partition), ...(exclude ? { exclude: ref('exclude', partition) } : {}) };
    const task: TaskOf<'rank-listed'> = { kernel: 'rank-listed', inputs, outputs: { places: output }, params: { ...rows, rank, ...(depth === undefined ? {} : { depth }) } };
    const steps = new StepList(contracts);
    steps.handOut(STAGE, output, place, steps.task(STAGE, place, task));
    steps.free(STAGE, place, [output, ...given.map(([one]) => one)]);
    const [partitionOfPlaces] = (await runSteps(steps.steps, ctx, { given })).handed;
    return { range, values: partitionOfPlaces.columns.values as Uint32Array };
  };
}

/** A block whose values are not read. */
function withoutValues(block: RatingBlock): Partition {
  const { columns, ...partition } = hostForm(block);
  return { ...partition, columns: { ...columns, values: new Float32Array(new SharedArrayBuffer(0)) } };
}
