import type { AlsStart } from '../../operators/als/bind/als-data.ts';
import type { SparkStart } from '../../operators/als/spark-start.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { TrainingIteration } from '../../operators/training/iteration.ts';
import type { FitOptions } from '../fit-options.ts';

/** Options of a fit, with what a search passes from one fit to the next. */
export interface ContinuedFit extends FitOptions {
  readonly continued?: Continued;
}

/** Settings of a fit that is one of several on the same ratings, such as the trials of a search, or Spark's. */
export interface Continued {
  /** Initial factors, from a fit with the same rank and biases on the same ratings. */
  readonly start?: AlsStart | undefined;
  /** Draws the initial factors of Spark's ALS, see sparkRows. */
  readonly sparkStart?: SparkStart | undefined;
  /** Receives the final factors. */
  readonly kept?: (factors: AlsStart) => void;
  /**
   * True if ALS should measure errors only after its first and last iteration; for a trial that cannot stop
   * early.
   */
  readonly measuresEnds?: boolean;
  /** Decides if the model of this iteration ranks the validation pairs; default: the option `ranking`. */
  readonly ranks?: (best: TrainingIteration | undefined) => boolean;
  /** The search that chose the parameters, saved with the model. */
  readonly tuning?: JsonObject;
}
