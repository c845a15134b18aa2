import type { AlsStart } from '../../operators/als/bind/als-data.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { TrainingIteration } from '../../operators/training/iteration.ts';
import type { FitOptions } from '../fit-options.ts';

/** Options of a fit, with what a search passes from one fit to the next. */
export interface ContinuedFit extends FitOptions {
  readonly continued?: Continued;
}

/** A fit among others on the same ratings. */
export interface Continued {
  /** Initial factors, from a fit with the same rank and biases on the same ratings. */
  readonly start?: AlsStart | undefined;
  /** Receives the final factors. */
  readonly kept?: (factors: AlsStart) => void;
  /** True for a trial that cannot stop early: ALS is measured only after its first and last iteration. */
  readonly measuresEnds?: boolean;
  /** Decides if the model of this iteration ranks the validation pairs; default: the option `ranking`. */
  readonly ranks?: (best: TrainingIteration | undefined) => boolean;
  /** The search that chose the parameters, saved with the model. */
  readonly tuning?: JsonObject;
}
