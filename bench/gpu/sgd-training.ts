/** SGD on a GPU, epoch by epoch: ratings are loaded once and stay on the device, and so does the start of each rank. */
import { join } from 'node:path';
import { openDeviceScope } from '../../engine/run/holdings.ts';
import { computeDevice, hostDevice } from '../../engine/devices.ts';
import type { Device } from '../../engine/executor.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { andThen, executePlan, runInto } from '../../engine/logical-plan.ts';
import type { ExecutionContext } from '../../engine/operator.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import { type Dataset, Session } from '../../index.ts';
import { devicePlan } from '../../operators/als/plan.ts';
import { randomOrder } from '../../engine/plan/grid-order.ts';
import { chooseSchedule } from '../../operators/sgd/choose-schedule.ts';
import { IndexIds } from '../../operators/ratings/index-ids.ts';
import { collectKnownPairs } from '../../operators/ratings/known-pairs.ts';
import { LearningRate } from '../../operators/sgd/learning-rate.ts';
import { placeBlock } from '../../operators/place-block.ts';
import type { RatingBlock } from '../../operators/ratings/rating-block.ts';
import { ratingErrors } from '../../operators/rating-errors.ts';
import { SelectRatings } from '../../operators/ratings/select-ratings.ts';
import { loadSgdData, loadSgdTest, type SgdData } from '../../operators/sgd/data.ts';
import { type EpochPass, preparePass } from '../../operators/sgd-epoch.ts';
import { checkSgdParams, type SgdParams } from '../../operators/sgd/params.ts';
import { BATCH_RATINGS, type SgdSchedule } from '../../operators/sgd/schedule.ts';
import { initializeSgd } from '../../operators/sgd/start.ts';
import type { TileShape } from '../../operators/sgd/tiles.ts';
import { type SgdVersion, SgdVersions } from '../../operators/sgd-versions.ts';
import { shuffleRatings } from '../../operators/sgd/shuffle-ratings.ts';
import type { SgdBlockTask } from '../../operators/tasks/tasks.ts';

/** Parameters of SGD, and what differs from the schedule that they choose: `tile` of its tiles, `bands` of wavefront's grid. */
export type SgdSetting = Partial<SgdParams> & {
  readonly tile?: Partial<TileShape>;
  readonly workers?: number;
  readonly lanes?: number;
  /** i and j. */
  readonly bands?: readonly [number, number];
};

/** A setting as it is run. */
export interface SgdRun {
  readonly params: SgdParams;
  readonly schedule: SgdSchedule;
  readonly pass: EpochPass;
}

const MAKESHIFT: SgdSchedule = { kind: 'blocks', workers: 1, rows: 'users', rowBands: 1, columnBands: 1, reasons: [] };

export class SgdTraining {
  readonly data: SgdData;
  readonly description: string;
  readonly #counts: { readonly users: number; readonly items: number };
  readonly #test: RatingBlock;
  readonly #device: Device;
  readonly #ctx: ExecutionContext;
  readonly #session: Session;
  #started: { readonly rank: number; readonly adaptive: boolean; readonly versions: SgdVersions; readonly start: SgdVersion } | undefined;
  #list: PartitionRef | undefined;

  private constructor(data: SgdData, test: RatingBlock, counts: { readonly users: number; readonly items: number }, seconds: number, session: Session, ctx: ExecutionContext) {
    this.#session = session;
    this.data = data;
    this.#test = test;
    this.#counts = counts;
    this.#ctx = ctx;
    this.#device = computeDevice(ctx.executor);
    this.description = `${this.#device.description}: ${counts.users} users, ${counts.items} items, ${data.block.ratings} ratings, ${test.ratings} test pairs; loaded in ${seconds.toFixed(1)} s`;
  }

  /** Opens the GPU and loads a data set that `factorflow generate` wrote. */
  static async open(folder: string): Promise<SgdTraining> {
    const begin = performance.now();
    const session = await Session.create({ device: 'gpu' });
    const { ctx } = openDeviceScope(session.context());
    const selected = ({ plan }: Dataset) => andThen(plan, new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }));
    const indexed = await runInto(selected(session.read.parquet(join(folder, 'train'))), new IndexIds(), ctx);
    const { users, items } = indexed;
    const counts = { users: keyCount(users), items: keyCount(items) };
    const data = await loadSgdData(indexed, { ...MAKESHIFT, rows: counts.users >= counts.items ? 'users' : 'items' }, { duplicates: 'keep', seed: 1, biases: false }, ctx);
    const known = await collectKnownPairs(await executePlan(selected(session.read.parquet(join(folder, 'test'))), ctx), users, items, ctx);
    const test = await loadSgdTest(known.indexed, data, ctx);
    for (const block of [data.block, test]) placeBlock(block, ctx.executor);
    return new SgdTraining(data, test, counts, (performance.now() - begin) / 1000, session, ctx);
  }

  async close(): Promise<void> {
    await this.#session[Symbol.asyncDispose]();
  }

  /** The parameters and the schedule of a setting. Throws where it cannot act. */
  async prepare({ tile, workers, lanes, bands, ...named }: SgdSetting): Promise<SgdRun> {
    const params = checkSgdParams({ rank: 128, regParam: 0.05, seed: 1, ...named });
    if (params.biases) throw new Error('the ratings of this bench are scaled for training without biases');
    const chosen = chooseSchedule({ ...this.#counts, ratings: this.data.block.ratings }, params, devicePlan(this.#device));
    const grid = bands && { rowBands: bands[0], columnBands: bands[1], workers: bands[0] };
    const schedule: SgdSchedule = { ...chosen, ...grid, ...(chosen.tile && { tile: tileOf(chosen.tile, tile, this.data) }), ...(workers && { workers }), ...(lanes && { lanes }) };
    requireTeams(schedule, devicePlan(this.#device).limits?.teamLanes ?? 1);
    const pass = schedule.kind === 'hogwild' ? await this.#hogwild(schedule) : await preparePass(this.data, schedule, params.seed, this.#device, this.#ctx);
    await this.#restart(params);
    return { params, schedule, pass };
  }

  /**
   * Trains from the start, and says after each epoch what it took and, where `evaluate` says so, its test RMSE. Goes on while
   * `more` says so. A rate that diverges is not halved.
   */
  async train(run: SgdRun, more: (epoch: number) => boolean, evaluate: (epoch: number) => boolean, seen: (epoch: number, milliseconds: number, rmse?: number) => void): Promise<void> {
    const { versions, start } = await this.#restart(run.params);
    const rate = new LearningRate(run.params);
    let version = start;
    for (let epoch = 1; more(epoch); epoch++) {
      const begin = performance.now();
      const next = run.pass.wantsCopy ? await versions.copy(version, 'sgd-epoch', this.#ctx) : versions.create();
      await this.#step(run, next, version, rate.of(epoch), epoch);
      const milliseconds = performance.now() - begin;
      if (version !== start) versions.release(version);
      version = next;
      seen(epoch, milliseconds, evaluate(epoch) ? await this.#rmse(version, run.params) : undefined);
    }
    if (version !== start) versions.release(version);
  }

  /** Steps one version again and again, so that nothing else is timed; `seen` hears what each epoch took and ends it by false. */
  async repeat(run: SgdRun, seen: (milliseconds: number) => boolean): Promise<void> {
    const { versions, start } = await this.#restart(run.params);
    let version = await versions.copy(start, 'sgd-epoch', this.#ctx);
    let other = run.pass.wantsCopy ? version : versions.create();
    for (let epoch = 1, goesOn = true; goesOn; epoch++) {
      const begin = performance.now();
      // Small steps: the numbers stay finite however often.
      await this.#step(run, other, version, 0.001, epoch);
      goesOn = seen(performance.now() - begin);
      [version, other] = [other, version];
    }
    for (const one of new Set([version, other])) versions.release(one);
  }

  /** Milliseconds of kernels on the GPU since this was called last, by name; they are timed from now on where `run` says so. */
  async kernelTimes(run: boolean): Promise<Readonly<Record<string, number>>> {
    const { values } = await this.#device.run({ kernel: 'kernel-times', inputs: {}, outputs: {}, params: { run } });
    return values as Readonly<Record<string, number>>;
  }

  /** Hogwild! over a list of ratings that is shuffled and uploaded once, for any number of teams. */
  async #hogwild({ workers, lanes, precision }: SgdSchedule): Promise<EpochPass> {
    const [host, device, { ratings }] = [hostDevice(this.#ctx.executor), this.#device, this.data.block];
    const list = this.#list ?? (await shuffleRatings(this.data.block, 1, host, this.#ctx));
    if (this.#list === undefined) device.put(list, await host.fetch(list));
    this.#list = list;
    const batches = Math.ceil(ratings / BATCH_RATINGS);
    const name = dataSetName('batch-order');
    const step: EpochPass['step'] = async (version, _source, params, epoch) => {
      const order: PartitionRef = { name, partition: 0, version: epoch };
      const shared = sharedArray(Uint32Array, batches);
      shared.set(randomOrder(batches, new CounterRandom(1, 0xba7c).derive(epoch)));
      device.put(order, { layout: 'batch-order', rows: batches, columns: { order: shared } });
      const task: SgdBlockTask = { kernel: 'sgd-block', inputs: { block: list, order }, outputs: { ...version }, params: { ...params, lanes, workers, precision, from: 0, to: batches, batch: BATCH_RATINGS } };
      await device.run(task);
      device.release(order);
    };
    return { wantsCopy: true, step };
  }

  async #step({ params, pass }: SgdRun, version: SgdVersion, source: SgdVersion, rate: number, epoch: number): Promise<void> {
    const { rank, biases, regParam } = params;
    const lambda = regParam / this.data.scale.deviation;
    await pass.step(version, source, { rank, biases, rate, rowLambda: lambda, columnLambda: lambda, adaptive: params.rate === 'adagrad' }, epoch, () => undefined);
  }

  async #rmse({ rows, columns }: SgdVersion, { rank }: SgdParams): Promise<number> {
    const { squared, count } = await ratingErrors('test-error', this.#test, { rowFactors: rows, columnFactors: columns }, { rank }, this.#device, this.#ctx);
    return this.data.scale.deviation * Math.sqrt(squared / count);
  }

  /** The start of a rank; that of another is freed. */
  async #restart(params: SgdParams): Promise<{ readonly versions: SgdVersions; readonly start: SgdVersion }> {
    const { rank } = params;
    const adaptive = params.rate === 'adagrad';
    if (this.#started?.rank === rank && this.#started.adaptive === adaptive) return this.#started;
    this.#started?.versions.releaseAll();
    const { block, columnOffsets } = this.data;
    const versions = new SgdVersions(this.#device, { rows: block.rows, columns: columnOffsets.length - 1 }, rank, adaptive);
    const start = versions.create();
    await initializeSgd(start, this.data, params, undefined, this.#device, this.#ctx);
    this.#started = { rank, adaptive, versions, start };
    return this.#started;
  }
}

/** As many places as so many tiles need. */
function tileOf(chosen: TileShape, change: Partial<TileShape> | undefined, { columnOffsets }: SgdData): TileShape {
  const tile = { ...chosen, ...change };
  return { ...tile, places: Math.ceil((columnOffsets.length - 1) / tile.tiles) };
}

/** A kernel would run with a team that does not fit, and compute nothing. */
function requireTeams({ tile, lanes: own = 1 }: SgdSchedule, most: number): void {
  const lanes = tile?.lanes ?? own;
  if (lanes > most) throw new Error(`teams of ${lanes} threads, but this GPU has teams of at most ${most}`);
  if (tile !== undefined && (tile.threads < tile.lanes || tile.threads % tile.lanes !== 0)) throw new Error(`${tile.threads} threads are no whole number of teams of ${tile.lanes}`);
}
