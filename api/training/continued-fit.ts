import type { AlsStart } from '../../operators/als/bind/als-data.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { TrainingIteration } from '../../operators/training/iteration.ts';
import type { FitOptions } from '../fit-options.ts';

/** Options of a fit with what a search hands from one to the next. */
export interface ContinuedFit extends FitOptions {
  readonly continued?: Continued;
}

/** A fit among others on the same ratings. */
export interface Continued {
  /** Factors to begin with, of a fit with the same rank and the same biases on the same ratings. */
  readonly start?: AlsStart | undefined;
  /** Told the factors at the end. */
  readonly kept?: (factors: AlsStart) => void;
  /**
   * True for a trial that nothing ends early: ALS is measured after its first iteration and its last alone.
   */
  readonly measuresEnds?: boolean;
  /**
   * True where the model of this iteration is to rank the validation pairs; without it as the option
   * `ranking` says.
   */
  readonly ranks?: (best: TrainingIteration | undefined) => boolean;
  /** The search that chose the parameters, which the model says. */
  readonly tuning?: JsonObject;
}
