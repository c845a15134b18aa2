/**
 * SGD on a GPU, epoch by epoch: ratings are loaded once; they and the current setting's initial factors stay
 * on the device.
 */
import { join } from 'node:path';
import { computeDevice, planDevices } from '../../../engine/run/devices.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import { andThen, executePlan } from '../../../engine/stream/logical-plan.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { BoundPlan, Versions } from '../../../engine/plan/bound-plan.ts';
import type { PhaseName } from '../../../engine/plan/stages.ts';
import { expand, expandFree, type Round } from '../../../engine/run/expand.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { type RunStepsOptions, runSteps } from '../../../engine/run/run-steps.ts';
import { type Dataset, Session } from '../../../index.ts';
import { readRatings } from '../../../operators/ratings/reading/read-ratings.ts';
import { collectKnownPairs } from '../../../operators/ratings/ids/known-pairs.ts';
import type { RatingBlock } from '../../../operators/ratings/rating-block.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { bindSgd } from '../../../operators/sgd/bind.ts';
import { loadSgdData, loadSgdTest, type SgdData } from '../../../operators/sgd/data/data.ts';
import { layOut, type SgdLayoutData } from '../../../operators/sgd/data/layout.ts';
import { LearningRate } from '../../../operators/sgd/learning-rate.ts';
import { checkSgdParams, type SgdParams } from '../../../operators/sgd/params.ts';
import { planSgd, scheduleOf } from '../../../operators/sgd/plan.ts';
import type { SgdSchedule } from '../../../operators/sgd/schedules/schedule.ts';
import type { TileShape } from '../../../operators/sgd/schedules/tiles.ts';
import { contracts } from '../../../operators/tasks/tasks.ts';
import { measureStages, trainingErrors } from '../../../operators/training/loss.ts';

/**
 * Parameters of SGD, and changes to the schedule that follows from them: `tile` for its tiles, `bands` for
 * wavefront's grid.
 */
export type SgdSetting = Partial<SgdParams> & {
  readonly tile?: Partial<TileShape>;
  readonly workers?: number;
  readonly lanes?: number;
  /** i and j. */
  readonly bands?: readonly [number, number];
};

/** A prepared setting. */
export interface SgdRun {
  readonly params: SgdParams;
  readonly schedule: SgdSchedule;
  readonly bound: BoundPlan;
  /** The versions of the initial factors, which are kept. */
  readonly start: Versions;
}

export class SgdTraining {
  readonly data: SgdData;
  readonly description: string;
  readonly #counts: { readonly users: number; readonly items: number };
  readonly #test: RatingBlock;
  readonly #ctx: ExecutionContext;
  readonly #session: Session;
  /** The shuffled ratings, for any number of teams. */
  #list: SgdLayoutData | undefined;
  #current: SgdRun | undefined;

  private constructor(
    data: SgdData,
    test: RatingBlock,
    counts: { readonly users: number; readonly items: number },
    seconds: number,
    session: Session,
    ctx: ExecutionContext,
  ) {
    this.#session = session;
    this.data = data;
    this.#test = test;
    this.#counts = counts;
    this.#ctx = ctx;
    this.description = `${computeDevice(ctx.executor).info.description}: ${counts.users} users, ${counts.items} items, ${data.ratings.ratings} ratings, ${test.ratings} test pairs; loaded in ${seconds.toFixed(1)} s`;
  }

  /** Opens the GPU and loads a data set from `factorflow generate`. */
  static async open(folder: string): Promise<SgdTraining> {
    const begin = performance.now();
    const session = await Session.create({ device: 'gpu' });
    const { ctx } = new Holdings(session.context());
    const selected = ({ plan }: Dataset) =>
      andThen(plan, new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }));
    const indexed = await readRatings(selected(session.read.parquet(join(folder, 'train'))), {}, ctx);
    const { users, items } = indexed;
    const data = await loadSgdData(indexed, { duplicates: 'keep', seed: 1, biases: false }, ctx);
    const known = await collectKnownPairs(
      await executePlan(selected(session.read.parquet(join(folder, 'test'))), ctx),
      users,
      items,
      ctx,
    );
    const test = await loadSgdTest(known.indexed, data, ctx);
    return new SgdTraining(
      data,
      test,
      { users: keyCount(users), items: keyCount(items) },
      (performance.now() - begin) / 1000,
      session,
      ctx,
    );
  }

  async close(): Promise<void> {
    await this.#ctx.executor.close();
    await this.#session[Symbol.asyncDispose]();
  }

  /**
   * Prepares the parameters and schedule of a setting, and draws its initial factors; frees the previous
   * setting's. Throws if the setting has no effect. For training without biases ratings are scaled, so that
   * the model learns the mean too.
   */
  async prepare({ tile, workers, lanes, bands, ...named }: SgdSetting): Promise<SgdRun> {
    const params = checkSgdParams({ rank: 128, regParam: 0.05, seed: 1, biases: false, ...named });
    const profile = { ...this.#counts, ratings: this.data.ratings.ratings, testRatings: this.#test.ratings };
    const devices = planDevices(this.#ctx.executor);
    const chosen = scheduleOf(planSgd(profile, params, devices));
    const grid = bands && { rowBands: bands[0], columnBands: bands[1], workers: bands[0] };
    const schedule: SgdSchedule = {
      ...chosen,
      ...grid,
      ...(chosen.tile && { tile: tileOf(chosen.tile, tile, this.data) }),
      ...(workers && { workers }),
      ...(lanes && { lanes }),
    };
    requireTeams(schedule, devices.compute[0].limits?.teamLanes ?? 1);
    if (this.#current) await this.#free(this.#current, this.#current.start, []);
    this.#current = undefined;
    const laid =
      (schedule.kind === 'hogwild' ? this.#list : undefined) ??
      (await layOut(this.data, { test: this.#test, schedule, seed: params.seed }, this.#ctx));
    if (schedule.kind === 'hogwild') this.#list = laid;
    const { bound, given } = bindSgd(
      planSgd(profile, params, devices, { schedule }),
      params,
      this.data,
      laid,
    );
    // Only the test RMSE is measured.
    const measured = {
      ...bound,
      phases: {
        ...bound.phases,
        measure: bound.phases.measure.filter(({ name }) => name === measureStages.test),
      },
    };
    const { versions } = await this.#run(measured, 'start', {}, { given });
    return (this.#current = { params, schedule, bound: measured, start: versions });
  }

  /**
   * Trains from the initial factors, and reports each epoch's time and, with `evaluate`, its test RMSE.
   * Continues while `more` returns true. A diverging rate is not halved.
   */
  async train(
    run: SgdRun,
    more: (epoch: number) => boolean,
    evaluate: (epoch: number) => boolean,
    seen: (epoch: number, milliseconds: number, rmse?: number) => void,
  ): Promise<void> {
    const rate = new LearningRate(run.params);
    let versions = run.start;
    for (let epoch = 1; more(epoch); epoch++) {
      const begin = performance.now();
      versions = await this.#epoch(run, versions, epoch, rate.of(epoch));
      const milliseconds = performance.now() - begin;
      seen(epoch, milliseconds, evaluate(epoch) ? await this.#rmse(run, versions) : undefined);
    }
    await this.#free(run, versions, [run.start]);
  }

  /** Runs and times epochs only; `seen` receives the time of each and stops them by returning false. */
  async repeat(run: SgdRun, seen: (milliseconds: number) => boolean): Promise<void> {
    let versions = run.start;
    for (let epoch = 1, goesOn = true; goesOn; epoch++) {
      const begin = performance.now();
      // Steps are small, so that numbers stay finite for any number of epochs.
      versions = await this.#epoch(run, versions, epoch, 0.001);
      goesOn = seen(performance.now() - begin);
    }
    await this.#free(run, versions, [run.start]);
  }

  /** Milliseconds of kernels on the GPU since the last call, by name; `run` enables their timing. */
  async kernelTimes(run: boolean): Promise<Readonly<Record<string, number>>> {
    const { values } = await computeDevice(this.#ctx.executor).run({
      kernel: 'kernel-times',
      inputs: {},
      outputs: {},
      params: { run },
    });
    return values as Readonly<Record<string, number>>;
  }

  async #epoch({ bound, start }: SgdRun, from: Versions, number: number, rate: number): Promise<Versions> {
    const round = { number, params: { rate, epoch: number, next: number + 1 } };
    return (await this.#run(bound, 'round', from, {}, round, [start])).versions;
  }

  async #rmse({ bound }: SgdRun, versions: Versions): Promise<number> {
    const { results } = await this.#run(bound, 'measure', versions);
    return trainingErrors(results, () => 0, this.data.scale.deviation).testRmse ?? Number.NaN;
  }

  async #run(
    bound: BoundPlan,
    phase: PhaseName,
    from: Versions,
    options: RunStepsOptions = {},
    round?: Round,
    keep: readonly Versions[] = [],
  ) {
    const { steps, versions } = expand(bound, contracts, phase, from, round, keep);
    return { versions, results: await runSteps(steps, this.#ctx, options) };
  }

  async #free(
    { bound }: Pick<SgdRun, 'bound'>,
    versions: Versions,
    keep: readonly Versions[],
  ): Promise<void> {
    await runSteps(expandFree(bound, contracts, 'free', versions, keep), this.#ctx);
  }
}

/** Adapts the number of places to the changed number of tiles. */
function tileOf(
  chosen: TileShape,
  change: Partial<TileShape> | undefined,
  { columnOffsets }: SgdData,
): TileShape {
  const tile = { ...chosen, ...change };
  return { ...tile, places: Math.ceil((columnOffsets.length - 1) / tile.tiles) };
}

/** Otherwise a kernel would run with a team that does not fit, and compute nothing. */
function requireTeams({ tile, lanes: own = 1 }: SgdSchedule, most: number): void {
  const lanes = tile?.lanes ?? own;
  if (lanes > most) throw new Error(`teams of ${lanes} threads, but this GPU has teams of at most ${most}`);
  if (tile !== undefined && (tile.threads < tile.lanes || tile.threads % tile.lanes !== 0))
    throw new Error(`${tile.threads} threads are no whole number of teams of ${tile.lanes}`);
}
