import type { SgdParams } from '../../operators/sgd/params.ts';
import type { CheckpointOptions } from './checkpoints/checkpoint-options.ts';
import type { FitOptions, fitRankingNames } from '../fit-options.ts';
import type { RatingOptions } from '../rating-input.ts';

/**
 * Options of `model.update`: the options of `SGD` without rank and biases, which the model fixes, and without
 * regOffset and biasDamping: new rows are solved with the model's own values, and steps ignore them, since
 * they would move rows without new ratings. Defaults: the model's columns; 2 epochs from a learning rate of
 * 0.002; λ = 0 for the steps, and the λ of the model's training for the rows of new users and items. A given
 * λ is used for both.
 */
export interface UpdateOptions
  extends
    Partial<Omit<SgdParams, 'rank' | 'biases' | 'regOffset' | 'biasDamping'>>,
    RatingOptions,
    Omit<FitOptions, 'plan' | (typeof fitRankingNames)[number] | keyof CheckpointOptions> {}
