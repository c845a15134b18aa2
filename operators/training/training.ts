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
 * An algorithm in the form that the loop runs: a bound plan, and pure functions of the results of its steps.
 */
export interface Training<Factors> {
  readonly bound: BoundPlan;
  readonly keep: KeptVersions;
  /**
   * Partitions that the first steps find in host memory, or at places. The loop empties the list then:
   * factors to go on from are on the devices, and nowhere else.
   */
  readonly given: Given[];
  /**
   * The loss that the first round is compared with; `measure`: that of the start; undefined: the first round
   * is not compared.
   */
  readonly startLoss: number | 'measure' | undefined;
  /** Parameters of a round's tasks. */
  round(number: number): JsonObject;
  /** Throws DivergedError for a round whose tasks report that. */
  check(number: number, results: StepResults): void;
  errors(measured: StepResults): TrainingErrors;
  /**
   * The same from a brief measure and the results of the round that it measures. Undefined where those do not
   * tell them; absent where each measure is whole.
   */
  errorsOfRound?(measured: StepResults, round: StepResults): TrainingErrors | undefined;
  /** True where the loss shows that the run has diverged. */
  diverged(loss: number, before: number): boolean;
  divergence(number: number, loss: number, before: number): DivergedError;
  /**
   * Halves the steps of the round that is run again and of all later ones, and gives the new rate. Absent
   * where rounds are not run again.
   */
  slower?(number: number): number;
  /** Called with the loss of each round that is kept. */
  accepted?(loss: number): void;
  /** State after the last round that was kept, beside its factors; `prepare` finds it in the copy. */
  course?(): JsonObject;
  /** Called when the steps of the start have begun: the first round waits for it as for them. */
  starting?(ctx: ExecutionContext): Promise<void>;
  /** Called behind the first round, when the devices have made their lists of the ratings. */
  settled?(ctx: ExecutionContext): Promise<void>;
  /** The factors that the phase `end` handed out; `last`: no round follows. */
  factors(results: StepResults, last: boolean): Factors;
}

export interface LoopOptions<Factors> {
  readonly called: 'iteration' | 'epoch';
  readonly maxIter: number;
  readonly devices: readonly DeviceInfo[];
  readonly rule: StoppingRule;
  /**
   * Seconds between two copies of a device's factors to the host, at least. Without them 2, and before the
   * first copy as many as its bytes call for.
   */
  readonly copySeconds?: number;
  readonly checkpoints?: Checkpoints<Factors> | undefined;
  /**
   * True for a run that is measured after its first round and its last alone; nothing may end it early.
   * Default false.
   */
  readonly measuresEnds?: boolean | undefined;
  /**
   * Called when the factors of the last round are in host memory and nothing more is asked of the devices,
   * before what they hold is released.
   */
  fetched?: (() => void) | undefined;
  /** Further measures of a version, from its factors in host memory. */
  measure?(factors: Factors, ctx: ExecutionContext): Promise<TrainingErrors['testMetrics']>;
  /** The training on these devices, from the start or from factors. */
  prepare(devices: readonly DeviceInfo[], from: HostCopy<Factors> | undefined): Promise<Training<Factors>>;
}

export interface LoopResult<Factors> {
  readonly factors: Factors;
  readonly iterations: readonly TrainingIteration[];
  /** The iteration whose factors these are. */
  readonly bestIteration: number;
  /** Seconds that the loop waited for measures of its rounds, of an attempt that a lost device ended too. */
  readonly measureSeconds: number;
  /** True where a round ran while the factors of an earlier one than the last were kept as the best. */
  readonly keptOlder: boolean;
  /** Set when the last device was lost: the factors are those that had reached the host by then. */
  readonly lost?: DeviceLostError;
}
