import { CheckpointFolder, type StoredCheckpoint } from '../../../connectors/checkpoint/checkpoint-folder.ts';
import { bytesOfMatrices } from '../../../connectors/checkpoint/read-checkpoint.ts';
import {
  DataError,
  FactorFlowError,
  UsageError,
  CancelledError,
  DeviceLostError,
  DivergedError,
} from '../../../engine/errors.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import {
  type GivenPlan,
  planDifferences,
  requirePlan,
  changesText,
} from '../../../operators/planner/given-plan.ts';
import type { FitCheckpoints } from '../../../operators/training/fit.ts';
import { CHECKPOINT_STAGE } from '../../../operators/training/planned-training.ts';
import type { HostCopy, Matrices, TrainingIteration } from '../../../operators/training/training.ts';
import type { ResumedFrom } from '../../reports/training-report.ts';
import { LostTrainingError } from '../lost-training.ts';
import { type CheckpointOptions } from './checkpoint-options.ts';
import {
  type CheckpointedRun,
  misfit,
  otherWriter,
  requireSameRun,
  stateOf,
  type Fingerprint,
  fingerprintDifferences,
  fingerprintOf,
} from './checkpoint-state.ts';
import { checkpointParams } from '../../option-params.ts';

/** Prefix for the names of the best iteration's matrices, if the best iteration is not the last. */
const BEST = 'best-';

/** The checkpoints of one run, in a folder that it has locked against other runs. */
export class RunCheckpoints implements FitCheckpoints {
  readonly interval: number;
  resumedFrom: ResumedFrom | undefined;
  /** The newest checkpoint that is completely written. */
  last: { readonly iteration: number; readonly path: string } | undefined;
  readonly #folder: CheckpointFolder;
  readonly #run: CheckpointedRun;
  readonly #ctx: ExecutionContext;
  /** The checkpoint to try next, the newest readable one; and the iterations of older checkpoints. */
  #candidate: StoredCheckpoint | undefined;
  #older: readonly number[] = [];
  readonly #faults: string[] = [];
  #data: Fingerprint | undefined;
  #plan: PhysicalPlan | undefined;
  #resumed: HostCopy<Matrices> | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(
    folder: CheckpointFolder,
    run: CheckpointedRun,
    interval: number,
    ctx: ExecutionContext,
  ) {
    this.#folder = folder;
    this.#run = run;
    this.interval = interval;
    this.#ctx = ctx;
  }

  /**
   * Locks the folder and reads its checkpoints, before ratings are read. Throws UsageError for an unusable
   * folder, for checkpoints without `resume`, and for a checkpoint of another algorithm or other parameters;
   * DataError if no checkpoint is readable.
   */
  static async open(
    {
      checkpointDir,
      checkpointInterval = checkpointParams.checkpointInterval.fallback,
      resume = false,
    }: CheckpointOptions & { readonly checkpointDir: string },
    run: CheckpointedRun,
    ctx: ExecutionContext,
  ): Promise<RunCheckpoints> {
    const folder = await CheckpointFolder.open(checkpointDir);
    const made = new RunCheckpoints(folder, run, checkpointInterval, ctx);
    try {
      const iterations = await folder.iterations();
      if (iterations.length > 0 && !resume)
        throw new UsageError(`the folder has the checkpoint of iteration ${iterations[0]} already`, {
          file: checkpointDir,
          advice: 'Continue from it with resume: true, or give another checkpointDir',
        });
      if (iterations.length === 0 && resume)
        ctx.events({
          type: 'note',
          text: `no checkpoint in ${checkpointDir}: training starts from the beginning`,
        });
      made.#older = iterations;
      await made.#next();
      return made;
    } catch (error) {
      await folder.close();
      throw error;
    }
  }

  /**
   * Reads the next older checkpoint as the one to try. Throws DataError if no readable checkpoint is left.
   */
  async #next(): Promise<void> {
    this.#candidate = undefined;
    while (this.#candidate === undefined && this.#older.length > 0) {
      const [iteration, ...older] = this.#older;
      this.#older = older;
      const found = await this.#folder
        .read(iteration)
        .then((one) => requireSameRun(one, this.#run))
        .catch((error: unknown) => this.#pass(error));
      this.#candidate = found;
    }
    if (this.#candidate === undefined && this.#faults.length > 0) {
      throw new DataError(`no checkpoint can be used: ${this.#faults.join('; ')}`, {
        phase: 'resume',
        file: this.#folder.path,
        advice: 'Remove them, or give another checkpointDir, to start from the beginning',
      });
    }
  }

  /**
   * Records the error of an unusable checkpoint, so that an older one is tried; throws errors of other kinds.
   */
  #pass(error: unknown): undefined {
    if (!(error instanceof DataError)) throw error;
    this.#faults.push(error.message);
    if (this.#older.length > 0)
      this.#ctx.events({ type: 'warning', text: `${error.message}; the checkpoint before it is tried` });
  }

  /**
   * Loads the checkpoint to continue from, once the data are known; `lengths`: numbers in each matrix of the
   * factors. `keptBytes`: see CheckpointFolder.matrices. Returns its plan. Throws UsageError for other data,
   * DataError if no checkpoint is usable, CapacityError if the disk has no room for new checkpoints.
   */
  async begin(
    given: Parameters<FitCheckpoints['begin']>[0],
    lengths: Readonly<Record<string, number>>,
    keptBytes: number,
    ctx: ExecutionContext,
  ): Promise<GivenPlan | undefined> {
    const data = await fingerprintOf(given, ctx);
    this.#data = data;
    let plan: GivenPlan | undefined;
    while (this.#candidate !== undefined) {
      const found = this.#candidate;
      const differences = fingerprintDifferences(found.state.data as JsonObject, data);
      if (differences.length > 0) throw misfit(found.path, differences);
      plan = await this.#load(found, lengths, keptBytes).catch((error: unknown) => this.#pass(error));
      if (this.#resumed !== undefined) break;
      await this.#next();
    }
    // Keeps only the checkpoint that is continued: removes damaged ones, and ones that a killed run did not
    // remove.
    if (this.#resumed !== undefined) await this.#folder.keep(this.#resumed.iteration);
    const { maxIter, earlyStop } = this.#run.params;
    const bytes =
      4 * Object.values(lengths).reduce((sum, length) => sum + length, 0) * (earlyStop === undefined ? 1 : 2);
    await this.#folder.requireRoom(
      bytes,
      Math.ceil((maxIter - (this.#resumed?.iteration ?? 0)) / this.interval),
    );
    return plan;
  }

  async #load(
    found: StoredCheckpoint,
    lengths: Readonly<Record<string, number>>,
    keptBytes: number,
  ): Promise<GivenPlan | undefined> {
    const { iteration, path, state } = found;
    const best = state.bestIteration as number;
    const ofBest =
      best === iteration
        ? {}
        : Object.fromEntries(Object.entries(lengths).map(([name, length]) => [`${BEST}${name}`, length]));
    const read = await this.#folder.matrices(found, { ...lengths, ...ofBest }, keptBytes);
    const pick = (prefix: string): Matrices =>
      Object.fromEntries(Object.keys(lengths).map((name) => [name, read[`${prefix}${name}`]]));
    this.#resumed = {
      iteration,
      factors: pick(''),
      ...(best === iteration ? {} : { best: { iteration: best, factors: pick(BEST) } }),
      iterations: state.iterations as unknown as TrainingIteration[],
      ...(state.course === undefined ? {} : { course: state.course as JsonObject }),
    };
    this.resumedFrom = { iteration, checkpoint: path, planChanges: [] };
    this.last = { iteration, path };
    this.#ctx.events({
      type: 'note',
      text: `training continues from iteration ${iteration} of ${path}${otherWriter(state)}`,
    });
    try {
      return requirePlan(state.plan);
    } catch (error) {
      this.#reportChanges([(error as Error).message]);
      return undefined;
    }
  }

  /**
   * Records the plan of this run for its checkpoints, and reports the differences to `before`, the
   * checkpoint's plan.
   */
  planned(plan: PhysicalPlan, before: GivenPlan | undefined): void {
    this.#plan = plan;
    if (before !== undefined) this.#reportChanges(planDifferences(before, plan, 'the checkpoint'));
  }

  #reportChanges(changes: readonly string[]): void {
    if (changes.length === 0 || this.resumedFrom === undefined) return;
    this.resumedFrom = { ...this.resumedFrom, planChanges: changes };
    this.#ctx.events({ type: 'note', text: `the plan has changed: ${changesText(changes)}` });
  }

  resume(): HostCopy<Matrices> | undefined {
    const copy = this.#resumed;
    this.#resumed = undefined;
    return copy;
  }

  ready(): Promise<void> {
    return this.#writing;
  }

  write(copy: HostCopy<Matrices>): void {
    if (copy.iteration === this.last?.iteration) return;
    this.#writing = this.#write(copy);
    // Prevents an unhandled rejection; the next call that waits for the write throws the error.
    this.#writing.catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#folder.close();
  }

  async #write(copy: HostCopy<Matrices>): Promise<void> {
    const { iteration, factors, best } = copy;
    const ofBest =
      best &&
      Object.fromEntries(Object.entries(best.factors).map(([name, values]) => [`${BEST}${name}`, values]));
    const matrices = { ...factors, ...ofBest };
    const { events, metrics } = this.#ctx;
    const state = stateOf(this.#run, copy, { data: this.#data, plan: this.#plan });
    const started = performance.now();
    try {
      await this.#folder.write(iteration, state, matrices);
    } catch (error) {
      if (!(error instanceof FactorFlowError)) throw error;
      events({
        type: 'warning',
        text:
          `the checkpoint of iteration ${iteration} could not be written, and training continues ` +
          `without it: ${error.message}`,
      });
      return;
    }
    const ended = performance.now();
    metrics.add(CHECKPOINT_STAGE, { bytesDown: bytesOfMatrices(matrices), milliseconds: ended - started });
    metrics.addSpan(CHECKPOINT_STAGE, started, ended);
    metrics.tracer?.span({
      place: 'files',
      row: 'checkpoints',
      name: CHECKPOINT_STAGE,
      start: started,
      end: ended,
      args: { iteration, bytes: bytesOfMatrices(matrices) },
    });
    this.last = { iteration, path: this.#folder.pathOf(iteration) };
  }
}

/**
 * Runs a training, with checkpoints if a folder is given. If it fails in a way from which a later run can
 * continue, the error names the last checkpoint.
 */
export async function withCheckpoints<Result>(
  { checkpointDir, ...options }: CheckpointOptions,
  run: CheckpointedRun,
  ctx: ExecutionContext,
  work: (checkpoints: RunCheckpoints | undefined) => Promise<Result>,
): Promise<Result> {
  if (checkpointDir === undefined) return work(undefined);
  const checkpoints = await RunCheckpoints.open({ checkpointDir, ...options }, run, ctx);
  try {
    const result = await work(checkpoints);
    await checkpoints.ready();
    return result;
  } catch (error) {
    await checkpoints.ready().catch(() => undefined);
    throw naming(error, checkpoints.last);
  } finally {
    await checkpoints.close();
  }
}

/** Adds the path of the last checkpoint to an error, as advice for continuing the training. */
function naming(error: unknown, last: RunCheckpoints['last']): unknown {
  if (last === undefined) return error;
  const kept = `the checkpoint of iteration ${last.iteration} is ${last.path}`;
  const continueAdvice = 'Continue from it with resume: true';
  if (error instanceof CancelledError)
    return new CancelledError({
      ...error.details,
      advice: `${kept[0].toUpperCase()}${kept.slice(1)}: continue from it with resume: true`,
      cause: error.details.cause,
    });
  if (error instanceof LostTrainingError)
    return new LostTrainingError(
      error.details.cause as DeviceLostError,
      error.model,
      error.iteration,
      last.path,
    );
  if (error instanceof DeviceLostError)
    return new DeviceLostError(`${error.summary}; ${kept}`, { ...error.details, advice: continueAdvice });
  if (error instanceof DivergedError) return new DivergedError(`${error.summary}; ${kept}`, error.details);
  return error;
}
