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

/** An algorithm for the training loop: a bound plan, and pure functions of the results of its steps. */
export interface Training<Factors> {
  readonly bound: BoundPlan;
  readonly keep: KeptVersions;
  /**
   * Partitions that exist before the first steps. The loop empties the list, so that only devices hold them.
   */
  readonly given: Given[];
  /** Loss to compare the first round with; `measure`: measure the start; undefined: no comparison. */
  readonly startLoss: number | 'measure' | undefined;
  /** Parameters of a round's tasks. */
  round(number: number): JsonObject;
  /** Throws DivergedError for a round whose tasks report divergence. */
  check(number: number, results: StepResults): void;
  errors(measured: StepResults): TrainingErrors;
  /**
   * The errors from a brief measure and the results of its round; undefined if these are not sufficient.
   * Absent if every measure is complete.
   */
  errorsOfRound?(measured: StepResults, round: StepResults): TrainingErrors | undefined;
  /** True if the loss shows that the run has diverged. */
  diverged(loss: number, before: number): boolean;
  divergence(number: number, loss: number, before: number): DivergedError;
  /** Halves the steps of this round and later ones; returns the rate. Absent if rounds are not repeated. */
  slower?(number: number): number;
  /** Called with the loss of each round that is kept. */
  accepted?(loss: number): void;
  /**
   * The algorithm's state after the last round that was kept, without the factors. It is stored in the copy,
   * from which `prepare` gets it back.
   */
  course?(): JsonObject;
  /** Called when the steps of the start have been sent. The first round waits for both. */
  starting?(ctx: ExecutionContext): Promise<void>;
  /** Called after the first round, when the devices have made their lists of the ratings. */
  settled?(ctx: ExecutionContext): Promise<void>;
  /** Factors from the results of the phase `end`; `last`: no round follows. */
  factors(results: StepResults, last: boolean): Factors;
}

export interface LoopOptions<Factors> {
  readonly called: 'iteration' | 'epoch';
  readonly maxIter: number;
  readonly devices: readonly DeviceInfo[];
  readonly rule: StoppingRule;
  /** Least seconds between two copies of factors to the host. Default 2; more before a large first copy. */
  readonly copySeconds?: number;
  readonly checkpoints?: Checkpoints<Factors> | undefined;
  /** Measures only the first round and the last; nothing may end the run early. Default false. */
  readonly measuresEnds?: boolean | undefined;
  /** Called when the result is in host memory, before device memory is released. */
  fetched?: (() => void) | undefined;
  /** Further measures of a version, from its factors in host memory. */
  measure?(factors: Factors, ctx: ExecutionContext): Promise<TrainingErrors['testMetrics']>;
  /** Prepares the training on these devices, from the start or from a copy. */
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
  /** True if a round ran while the factors of an earlier round than the last were kept as the best. */
  readonly keptOlder: boolean;
  /** Set if the last device was lost: the factors are those copied to the host by then. */
  readonly lost?: DeviceLostError;
}
