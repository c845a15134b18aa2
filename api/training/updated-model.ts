import type { DampedMeans } from '../../operators/evaluation/baselines.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import type { Model } from '../model.ts';

/** The model that is trained further. */
export interface UpdatedModel {
  readonly model: Model;
  readonly factors: FactorModel;
  readonly means: DampedMeans | undefined;
}
