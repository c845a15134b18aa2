import { hostDevice } from '../engine/devices.ts';
import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../engine/partition.ts';
import { CounterRandom } from '../engine/random.ts';
import { runStage } from '../engine/run-stage.ts';
import { blockWaves, randomOrder } from '../engine/plan/grid-order.ts';
import { cutIntoGrid } from './rating-grid.ts';
import { balancedRanges } from './row-ranges.ts';
import { runBlocks } from './run-blocks.ts';
import type { SgdData } from './sgd-data.ts';
import { BATCH_RATINGS, type SgdSchedule } from './sgd-schedule.ts';
import type { SgdVersion } from './sgd-versions.ts';
import { evenRanges, shuffleRatings } from './shuffled-ratings.ts';
import type { TileShape } from './sgd-tiles.ts';
import type { SgdBlockTask, SgdTilesTask, SgdWavesTask } from './tasks.ts';

const STAGE = 'sgd-epoch';

/** Tasks for each worker in an epoch of Hogwild!, so that a slow one does not hold up the others for long. */
const TASKS_PER_WORKER = 8;

/** What every task of an epoch has. */
export type StepParams = Omit<SgdBlockTask['params'], 'rowStart' | 'from' | 'to' | 'batch'>;

/** What runs an epoch. */
export interface EpochPass {
  /** Whether `version` must hold the numbers of `source` before; else it may hold anything. */
  readonly wantsCopy: boolean;
  /** Makes `version` of `source` by stepping once on every rating. `onProgress` hears the part of the epoch that is done. */
  step(version: SgdVersion, source: SgdVersion, params: StepParams, epoch: number, onProgress: (part: number) => void): Promise<void>;
}

/** Lays the ratings out as the schedule wants them, once, and gives what runs an epoch over them. */
export async function preparePass(data: SgdData, schedule: SgdSchedule, seed: number, device: Device, ctx: ExecutionContext): Promise<EpochPass> {
  if (schedule.tile !== undefined) return tilePass(data, schedule.tile, seed, device, ctx);
  if (schedule.kind === 'wavefront' && device.kind === 'gpu') return wavesPass(data, schedule, seed, device, ctx);
  return schedule.kind === 'hogwild' ? hogwildPass(data, schedule, seed, device, ctx) : gridPass(data, schedule, seed, device, ctx);
}

/** batch-Hogwild! (cuMF_SGD, section 3.2.2): the batches of a shuffled list in an order of the epoch's own, shared out among the workers. */
async function hogwildPass({ block }: SgdData, { workers, lanes, precision }: SgdSchedule, seed: number, device: Device, ctx: ExecutionContext): Promise<EpochPass> {
  const host = hostDevice(ctx.executor);
  const list = await shuffleRatings(block, seed, host, ctx);
  if (device !== host) {
    device.put(list, await host.fetch(list));
    host.release(list);
  }
  const teams = device.kind === 'gpu' ? { lanes, workers, precision } : {};
  const batches = Math.ceil(block.ratings / BATCH_RATINGS);
  const name = dataSetName('batch-order');
  const random = new CounterRandom(seed, 0xba7c);
  const draw = (epoch: number) => {
    const shared = sharedArray(Uint32Array, batches);
    shared.set(randomOrder(batches, random.derive(epoch)));
    return { epoch, shared };
  };
  let drawn = draw(1);
  const step: EpochPass['step'] = async (version, _source, params, epoch, onProgress) => {
    const order: PartitionRef = { name, partition: 0, version: epoch };
    if (drawn.epoch !== epoch) drawn = draw(epoch);
    device.put(order, { layout: 'batch-order', rows: batches, columns: { order: drawn.shared } });
    const tasks = evenRanges(batches, device.kind === 'gpu' ? 1 : TASKS_PER_WORKER * workers).map(
      (range): SgdBlockTask => ({ kernel: 'sgd-block', inputs: { block: list, order }, outputs: { ...version }, params: { ...params, ...teams, ...range, batch: BATCH_RATINGS } }),
    );
    const running = runStage(ctx, STAGE, device, tasks, (finished) => onProgress(finished / tasks.length));
    // While the workers are busy; an epoch that is run again draws its own again.
    drawn = draw(epoch + 1);
    await running;
    device.release(order);
  };
  return { wantsCopy: true, step };
}

/** Tiles of columns in the workgroups of a GPU: one task an epoch. */
function tilePass({ block, scale }: SgdData, { tiles, lanes, threads, precision }: TileShape, seed: number, device: Device, ctx: ExecutionContext): EpochPass {
  const level = (scale.mean - scale.center) / scale.deviation;
  const step: EpochPass['step'] = async (version, source, params, epoch, onProgress) => {
    const task: SgdTilesTask = { kernel: 'sgd-tiles', inputs: { block: block.ref, ...sourceInputs(source) }, outputs: { ...version }, params: { ...params, tiles, lanes, threads, precision, level, seed, epoch } };
    await runStage(ctx, STAGE, device, [task], () => onProgress(1));
  };
  return { wantsCopy: false, step };
}

function sourceInputs({ rows, columns, rowSums, columnSums }: SgdVersion): SgdTilesTask['inputs'] {
  return { sourceRows: rows, sourceColumns: columns, ...(rowSums && columnSums ? { sourceRowSums: rowSums, sourceColumnSums: columnSums } : {}) };
}

/** wavefront-update on a GPU: one task an epoch, whose waves are the same as those of CPU threads over such a grid. */
function wavesPass({ block, columnOffsets }: SgdData, { rowBands, columnBands, lanes = 1, precision = 'f32' }: SgdSchedule, seed: number, device: Device, ctx: ExecutionContext): EpochPass {
  const startsOf = (offsets: Int32Array, bands: number) => [0, ...balancedRanges(offsets, bands, 0).map(({ to }) => to)];
  const [rowStarts, columnStarts] = [startsOf(block.offsets, rowBands), startsOf(columnOffsets, columnBands)];
  const workers = rowStarts.length - 1;
  const name = dataSetName('wave-order');
  const random = new CounterRandom(seed, 0xb10c);
  const step: EpochPass['step'] = async (version, source, params, epoch, onProgress) => {
    const waves = blockWaves(workers, columnStarts.length - 1, random.derive(epoch));
    const order: PartitionRef = { name, partition: 0, version: epoch };
    const shared = sharedArray(Uint32Array, waves.length * workers).fill(0xffff_ffff);
    waves.forEach((wave, number) => wave.forEach(({ row, column }) => (shared[number * workers + row] = column)));
    device.put(order, { layout: 'wave-order', rows: waves.length, columns: { order: shared } });
    const task: SgdWavesTask = { kernel: 'sgd-waves', inputs: { block: block.ref, order, ...sourceInputs(source) }, outputs: { ...version }, params: { ...params, lanes, precision, rowStarts, columnStarts } };
    await runStage(ctx, STAGE, device, [task], () => onProgress(1));
    device.release(order);
  };
  return { wantsCopy: false, step };
}

/** wavefront-update and blocks: the blocks of a grid in the waves of the epoch. */
async function gridPass({ block, columnOffsets }: SgdData, schedule: SgdSchedule, seed: number, device: Device, ctx: ExecutionContext): Promise<EpochPass> {
  const { rowBands, columnBands, blocks } = await cutIntoGrid(block, columnOffsets, schedule, device, ctx);
  const random = new CounterRandom(seed, 0xb10c);
  const step: EpochPass['step'] = async (version, _source, params, epoch, onProgress) => {
    const tasks = blockWaves(rowBands.length, columnBands.length, random.derive(epoch))
      .flat()
      .map(({ row, column }) => {
        const task: SgdBlockTask = { kernel: 'sgd-block', inputs: { block: blocks[row][column] }, outputs: { ...version }, params: { ...params, rowStart: rowBands[row].from } };
        return { row, column, task };
      });
    await runBlocks(ctx, STAGE, device, tasks, (finished) => onProgress(finished / tasks.length));
  };
  return { wantsCopy: true, step };
}
