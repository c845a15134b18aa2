import { type DeviceLostError, type DivergedError, UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { BoundPlan, KeptVersions } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { StoredNumbers } from '../../engine/row-parts.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Given, StepResults } from '../../engine/run/run-steps.ts';
import { type EarlyStopMetric, rankingMetricOf } from '../params/common.ts';
import type { TrainingErrors } from './loss.ts';

/** Report of one iteration of ALS, or one epoch of SGD. */
export interface TrainingIteration {
  /** From 1. */
  readonly iteration: number;
  /**
   * Seconds of the iteration without evaluation: from the time at which its steps are sent to the end of its
   * own steps. If it was sent early, while the previous iteration or its evaluation was still running, the
   * time starts when these had ended. If one GPU runs iterations one after the other, the GPU's own clock
   * measures it.
   */
  readonly seconds: number;
  /** J, see TrainingErrors. */
  readonly loss: number;
  /** Absent for implicit data. */
  readonly trainRmse?: number;
  /**
   * True if `loss` and `trainRmse` were computed as part of solving the users, from the factors as its
   * kernels read them. They are then within 0.0003 of the ratings' deviation, and in float32 to about six
   * digits. Absent if a separate pass over the ratings computed them: after the last iteration, and for the
   * iteration whose factors are kept.
   */
  readonly fromSolve?: true;
  /**
   * For the last iteration: the errors that the solve computed, before a pass over the ratings replaced them.
   * A run that continues from this iteration reports these, as the uninterrupted run would have.
   */
  readonly solved?: { readonly loss: number; readonly trainRmse?: number };
  readonly testRmse?: number;
  /** Mean absolute error on the validation set. */
  readonly testMae?: number;
  /** The ranking metric of `earlyStopMetric` on the validation set, under its name. */
  readonly testMetrics?: Readonly<Record<string, number>>;
  /** For SGD: γ of the epoch; with AdaGrad α. */
  readonly rate?: number;
}

/**
 * The part of ALS or SGD that the training loop calls: a plan bound to its data, and functions of the results
 * of its steps.
 */
export interface Training<Factors> {
  readonly bound: BoundPlan;
  readonly keep: KeptVersions;
  /**
   * Partitions to hand to the first steps. The loop removes them from the list, so that host memory does not
   * keep them.
   */
  readonly given: Given[];
  /**
   * Loss with which the first round is compared to detect divergence; 'measure': the loss of the initial
   * factors; undefined: no comparison.
   */
  readonly startLoss: number | 'measure' | undefined;
  /** Parameters of a round's tasks. */
  round(number: number): JsonObject;
  /** Throws DivergedError for a round whose tasks report divergence. */
  check(number: number, results: StepResults): void;
  errors(measured: StepResults): TrainingErrors;
  /**
   * Computes errors from a brief measure, without a pass over the ratings, and the results of the round.
   * Undefined if these are not sufficient. Absent for an algorithm that always measures completely.
   */
  errorsOfRound?(measured: StepResults, round: StepResults): TrainingErrors | undefined;
  /** True if a loss, compared with the loss before, shows that the run has diverged. */
  diverged(loss: number, before: number): boolean;
  divergence(number: number, loss: number, before: number): DivergedError;
  /**
   * Halves the step size of this round and later ones; returns the new rate. Absent if a diverged round is
   * not repeated.
   */
  slower?(number: number): number;
  /** Called with the loss of each round that is kept. */
  accepted?(loss: number): void;
  /**
   * The algorithm's state besides the factors, after the last round that was kept. It is stored with copies
   * of the factors; `prepare` gets it back from there.
   */
  course?(): JsonObject;
  /**
   * Called when the steps of the start have been sent. The first round waits for them and for the returned
   * promise.
   */
  starting?(ctx: ExecutionContext): Promise<void>;
  /**
   * Called after the first round, when the devices have converted the ratings to their own layouts and host
   * memory may free them.
   */
  settled?(ctx: ExecutionContext): Promise<void>;
  /**
   * Assembles the factors from the results of the phase `end`, which copies them to the host. `last`: no
   * round follows.
   */
  factors(results: StepResults, last: boolean): Factors;
}

export interface LoopOptions<Factors> {
  readonly called: 'iteration' | 'epoch';
  readonly maxIter: number;
  readonly devices: readonly DeviceInfo[];
  readonly rule: StoppingRule;
  /**
   * Least seconds between two copies of factors to the host. Default 2, or more if the first copy is large.
   */
  readonly copySeconds?: number;
  readonly checkpoints?: Checkpoints<Factors> | undefined;
  /** True measures only the first and the last round; then nothing may end the run early. Default false. */
  readonly measuresEnds?: boolean | undefined;
  /** Called when the result is in host memory, before device memory is released. */
  fetched?: (() => void) | undefined;
  /** Measures further metrics of factors in host memory, such as rankings. */
  measure?(factors: Factors, ctx: ExecutionContext): Promise<TrainingErrors['testMetrics']>;
  /** Prepares the training on these devices: from initial factors, or from a copy of earlier ones. */
  prepare(devices: readonly DeviceInfo[], from: HostCopy<Factors> | undefined): Promise<Training<Factors>>;
}

export interface LoopResult<Factors> {
  readonly factors: Factors;
  readonly iterations: readonly TrainingIteration[];
  /** Iteration of these factors. */
  readonly bestIteration: number;
  /**
   * Seconds in which the loop waited for measures of its rounds, including attempts that a lost device ended.
   */
  readonly measureSeconds: number;
  /** True if early stop made a round keep an older version of the factors, the best so far, in memory. */
  readonly keptOlder: boolean;
  /** Set if the last device was lost. The result's factors are then the last copy on the host. */
  readonly lost?: DeviceLostError;
}

/**
 * Factors in host memory after an iteration, with everything else that is needed to continue the run from
 * there.
 */
export interface HostCopy<Factors> {
  readonly iteration: number;
  readonly factors: Factors;
  /** The best factors so far, if they are of an earlier iteration than `iteration`. */
  readonly best?: { readonly iteration: number; readonly factors: Factors };
  /** All iterations so far; the stopping rule restores its state from them. */
  readonly iterations: readonly TrainingIteration[];
  /** State of the algorithm in addition to the factors. */
  readonly course?: JsonObject;
}

/** Stores copies in files, so that a run can continue in another process. */
export interface Checkpoints<Factors> {
  /** Number of iterations between two checkpoints. */
  readonly interval: number;
  /**
   * The copy from which the run continues, if any. The caller owns it: the checkpoints drop their reference,
   * so that memory holds it once.
   */
  resume(): HostCopy<Factors> | undefined;
  /** Waits until writes that were started have ended, since their memory is needed for the next copy. */
  ready(): Promise<void>;
  /** Starts to write a copy. A failed write does not end the run. */
  write(copy: HostCopy<Factors>): void;
}

/**
 * Row-major float32 matrices and vectors by name, without padding: whole, in parts of adjacent rows, or in
 * files.
 */
export type Matrices = Readonly<Record<string, Float32Array | readonly Float32Array[] | StoredNumbers>>;

export function isStored(matrix: Matrices[string]): matrix is StoredNumbers {
  return 'read' in matrix;
}

/** The parts of a matrix. Numbers in files are read. */
export function partsOfMatrix(matrix: Matrices[string]): readonly Float32Array[] {
  if (isStored(matrix)) return [matrix.read(0, matrix.length)];
  return matrix instanceof Float32Array ? [matrix] : matrix;
}

/** Adapts checkpoints of matrices to an algorithm's factors. */
export function checkpointsOf<Factors>(
  checkpoints: Checkpoints<Matrices> | undefined,
  toMatrices: (factors: Factors) => Matrices,
  fromMatrices: (matrices: Matrices) => Factors,
): Checkpoints<Factors> | undefined {
  if (checkpoints === undefined) return undefined;
  const resume = () => {
    const copy = checkpoints.resume();
    return copy && withFactors(copy, fromMatrices);
  };
  return {
    interval: checkpoints.interval,
    resume,
    ready: () => checkpoints.ready(),
    write: (copy) => checkpoints.write(withFactors(copy, toMatrices)),
  };
}

function withFactors<From, To>(
  { factors, best, ...state }: HostCopy<From>,
  change: (factors: From) => To,
): HostCopy<To> {
  return {
    ...state,
    factors: change(factors),
    ...(best && { best: { iteration: best.iteration, factors: change(best.factors) } }),
  };
}

/** Parameters that may end a run before its last iteration. */
interface StoppingParams {
  /** Ends after this number of iterations without a better value of the metric, and keeps the best. */
  readonly earlyStop?: number;
  /** See CommonParams. */
  readonly earlyStopMetric?: EarlyStopMetric;
  /** Ends once the validation RMSE is at most this. */
  readonly targetRmse?: number;
}

export interface Verdict {
  /** True if these factors are the best so far. */
  readonly best: boolean;
  /** The reason to stop now; undefined to continue. */
  readonly stop?: string;
}

/**
 * Decides after each iteration which factors to keep and whether to continue. Without `earlyStop` the last
 * iteration is the best. With it, the iteration with the lowest validation RMSE or the highest ranking
 * metric is the best, and training ends after `earlyStop` iterations without a better one. With
 * `targetRmse`, training also ends once the validation RMSE has reached the target.
 */
export class StoppingRule {
  readonly #params: StoppingParams;
  readonly #metric: string | undefined;
  /** The least value so far: of the RMSE, or of the metric with reversed sign. */
  #least = Number.POSITIVE_INFINITY;
  #bestIteration = 0;

  constructor(params: StoppingParams, test: { readonly ratings: number } | undefined) {
    this.#params = params;
    this.#metric = rankingMetricOf(params);
    if (test !== undefined && test.ratings > 0) return;
    const lack =
      test === undefined
        ? 'a validation set'
        : 'a validation set with ratings of users and items of the training set; this one has no such ratings';
    for (const name of ['earlyStop', 'targetRmse'] as const) {
      if (params[name] !== undefined)
        throw new UsageError(`${name} needs ${lack}`, { advice: 'Pass one with the option validation' });
    }
  }

  /** True if no iteration can end the run and each one counts as the best so far, with any errors. */
  get isForeseen(): boolean {
    return StoppingRule.isForeseen(this.#params);
  }

  static isForeseen({ earlyStop, targetRmse }: StoppingParams): boolean {
    return earlyStop === undefined && targetRmse === undefined;
  }

  /** Restores the state after these iterations, and returns the verdict on the last one. */
  rewind(iterations: readonly TrainingIteration[]): Verdict {
    this.#least = Number.POSITIVE_INFINITY;
    this.#bestIteration = 0;
    let verdict: Verdict = { best: true };
    for (const one of iterations) verdict = this.judge(one);
    return verdict;
  }

  judge({ iteration, testRmse, testMetrics = {} }: TrainingIteration): Verdict {
    const { earlyStop, targetRmse } = this.#params;
    const metric = this.#metric;
    const value = metric === undefined ? testRmse : -testMetrics[metric];
    if (value === undefined) return { best: true };
    const better = value < this.#least;
    if (better) {
      this.#least = value;
      this.#bestIteration = iteration;
    }
    const best = better || earlyStop === undefined;
    if (targetRmse !== undefined && testRmse !== undefined && testRmse <= targetRmse) {
      return {
        best,
        stop: `stopped after iteration ${iteration}: validation RMSE ${testRmse.toFixed(4)} reached the target ${targetRmse}`,
      };
    }
    if (earlyStop !== undefined && iteration - this.#bestIteration >= earlyStop) {
      return {
        best,
        stop: `stopped after iteration ${iteration}: no better validation ${metric ?? 'RMSE'} than ${Math.abs(this.#least).toFixed(4)} of iteration ${this.#bestIteration}, which is kept`,
      };
    }
    return { best };
  }
}
