import type { DeviceLostError, DivergedError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { BoundPlan, KeptVersions } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Given, StepResults } from '../../engine/run/run-steps.ts';
import type { Checkpoints, HostCopy } from './host-copy.ts';
import type { TrainingIteration } from './iteration.ts';
import type { TrainingErrors } from './loss.ts';
import type { StoppingRule } from './stopping-rule.ts';

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
