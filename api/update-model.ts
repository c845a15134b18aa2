import { UsageError } from '../engine/errors.ts';
import type { Json, JsonObject } from '../engine/json.ts';
import type { FactorModel } from '../operators/factor-model.ts';
import { checkSgdParams, type SgdParams } from '../operators/sgd-params.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import type { Dataset } from './dataset.ts';
import { fitSgd } from './fit-sgd.ts';
import type { Model } from './model.ts';
import { checkFit, type FitOptions, RatingInput, type RatingOptions, ratingOptionNames } from './rating-input.ts';

/**
 * Options of `model.update`: those of `SGD` but for what the model fixes, its rank and whether it has biases. Defaults: the
 * λ that the model was trained with, its columns, 5 epochs at a learning rate of 0.005.
 */
export interface UpdateOptions extends Partial<Omit<SgdParams, 'rank' | 'biases'>>, RatingOptions, FitOptions {}

const paramNames = ['maxIter', 'regParam', 'regParamUsers', 'regParamItems', 'seed', 'learningRate', 'decay', 'rate', 'schedule', 'precision', 'earlyStop', 'targetRmse'] as const satisfies readonly (keyof SgdParams)[];

/**
 * Much smaller than for a model that starts at random: what the model knows is near where it belongs already, and larger steps
 * toward the new ratings alone would forget the old ones (by 0.02 to 0.1 of RMSE on ml-latest-small and douban at 0.05).
 */
const defaults = { maxIter: 2, learningRate: 0.002 } as const;

/** See Model.update. */
export async function updateModel(model: Model, factors: FactorModel, ratings: Dataset, options: UpdateOptions): Promise<Model> {
  checkOptions('update', options, [...paramNames, ...ratingOptionNames, 'validation', ...runOptionNames], '{ maxIter: 5 }');
  const { validation, signal, onEvent, ...rest } = options;
  checkFit('update', ratings, { validation, signal, onEvent });
  const trained = (model.metadata.params ?? {}) as JsonObject;
  const biases = trained.biases === true;
  const { user, item, rating } = model.columns;
  const input = new RatingInput({ userCol: user, itemCol: item, ratingCol: rating, coldStartStrategy: model.coldStartStrategy, ...pick(rest, ratingOptionNames) });
  const params = checkSgdParams({ ...defaults, ...trainedLambda(trained, rest), ...pick(rest, paramNames), biases, rank: model.rank - (biases ? 2 : 0) });
  if (trained.nonnegative === true) {
    throw new UsageError('a model with nonnegative factors cannot be updated: SGD does not keep them >= 0', { advice: 'Train a new one, or one without nonnegative' });
  }
  return fitSgd({ params, input, start: factors, ...(givesLambda(rest) ? {} : { stepLambda: 0 }) }, ratings, { validation, signal, onEvent });
}

/** λ as the model was trained with, where the options say nothing of it. */
function trainedLambda(trained: JsonObject, given: Partial<SgdParams>): Partial<SgdParams> {
  if (givesLambda(given)) return {};
  const { regParam, regParamUsers, regParamItems } = trained;
  if (regParamUsers !== undefined && regParamItems !== undefined) return numbers({ regParamUsers, regParamItems });
  return numbers({ regParam, regParamUsers, regParamItems });
}

function givesLambda({ regParam, regParamUsers, regParamItems }: Partial<SgdParams>): boolean {
  return regParam !== undefined || regParamUsers !== undefined || regParamItems !== undefined;
}

function numbers(values: Readonly<Record<string, Json | undefined>>): Partial<SgdParams> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === 'number'));
}

function pick<T extends object, K extends keyof T & string>(from: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]])) as Pick<T, K>;
}
