import type { ALS, AlsOptions } from '../../api/als.ts';
import type { Dataset } from '../../api/dataset.ts';
import type { Model } from '../../api/model.ts';
import type { FitOptions, RatingOptions } from '../../api/rating-input.ts';
import type { Session } from '../../api/session.ts';
import type { SGD, SgdOptions } from '../../api/sgd.ts';
import type { UpdateOptions } from '../../api/update-model.ts';
import type { CommandContext } from '../commands/command.ts';
import { algorithmOf } from '../options/check-algorithm.ts';
import type { TrainingValues } from '../options/training-options.ts';

type Given = ReadonlySet<string>;

/** The algorithm and parameters of the flags, checked before any ratings are read. */
export interface Trainer {
  /** Prepares for these ratings; with --algorithm auto reads them first. */
  prepare(session: Session, ratings: Dataset, context: CommandContext): Promise<PreparedTrainer>;
}

export interface PreparedTrainer {
  fit(ratings: Dataset, options: FitOptions): Promise<Model>;
  plan: ALS['plan'];
  /** The reason for the algorithm, with --algorithm auto. */
  readonly reason?: string;
}

/** Throws UsageError for parameters out of range. */
export async function trainerOf(values: TrainingValues & { readonly initModel?: string | undefined }, given: Given): Promise<Trainer> {
  const algorithm = algorithmOf(values);
  if (values.initModel !== undefined) return updater(values.initModel, updateOptions(values, given));
  if (algorithm === 'als') {
    const { ALS } = await import('../../api/als.ts');
    const als = new ALS({ ...alsParams(values), ...ratingOptions(values) });
    return { prepare: async () => prepared(als) };
  }
  if (algorithm === 'sgd') {
    const { SGD } = await import('../../api/sgd.ts');
    const sgd = new SGD({ ...sgdParams(values, given), ...ratingOptions(values) });
    return { prepare: async () => prepared(sgd) };
  }
  const { chooseTrainer } = await import('../../api/choose-trainer.ts');
  const { rank, maxIter, regParam, seed, biases, precision, earlyStop, targetRmse } = values;
  const options = { rank, maxIter, regParam, seed, biases, precision, earlyStop, targetRmse, ...ratingOptions(values) };
  return {
    prepare: async (_session, ratings, { signal, onEvent }) => {
      const { trainer, reason } = await chooseTrainer(ratings, options, { signal, onEvent });
      onEvent({ type: 'note', text: reason });
      return { ...prepared(trainer), reason };
    },
  };
}

function prepared(trainer: ALS | SGD): PreparedTrainer {
  return { fit: (ratings, options) => trainer.fit(ratings, options), plan: (ratings, options) => trainer.plan(ratings, options) };
}

function updater(directory: string, options: UpdateOptions): Trainer {
  return {
    prepare: async (session) => {
        const model = await session.loadModel(directory);
      return { fit: (ratings, run) => model.update(ratings, { ...options, ...run }), plan: (ratings, run) => model.planUpdate(ratings, { ...options, ...run }) };
    },
  };
}

/** The flags as parameters of `ALS`, without those of the ratings. */
export function alsParams(values: TrainingValues): Omit<AlsOptions, keyof RatingOptions> {
  const { rank, maxIter, regParam, seed, solver, cgSteps, biases, nonnegative, precision, kernel, earlyStop, targetRmse } = values;
  return { rank, maxIter, regParam, seed, solver, cgSteps, biases, nonnegative, precision, kernel, earlyStop, targetRmse };
}

/** The flags as parameters of `SGD`, without those of the ratings. */
export function sgdParams(values: TrainingValues, given: Given): Omit<SgdOptions, keyof RatingOptions> {
  const { rank, biases, seed } = values;
  return { rank, biases, ...stepOptions(values, given), seed };
}

/** The flags as options of `model.update`; the model keeps those that are not given. */
function updateOptions(values: TrainingValues, given: Given): UpdateOptions {
  const all: Readonly<Record<string, unknown>> = { ...stepOptions(values, given), ...ratingOptions(values), seed: values.seed };
  const names = Object.keys(all).filter((name) => name === 'seed' || given.has(name === 'coldStartStrategy' ? 'coldStart' : name));
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

function stepOptions(values: TrainingValues, given: Given): Omit<SgdOptions, keyof RatingOptions | 'rank' | 'biases' | 'seed'> {
  const { maxIter, regParamUsers, regParamItems, learningRate, decay, rate, schedule, precision, earlyStop, targetRmse } = values;
  const regParam = given.has('regParam') ? values.regParam : undefined;
  return { maxIter, regParam, regParamUsers, regParamItems, learningRate, decay, rate, schedule, precision, earlyStop, targetRmse };
}

function ratingOptions(values: TrainingValues): Pick<AlsOptions, keyof RatingOptions> {
  const { userCol, itemCol, ratingCol, timestampCol, onDuplicates, onBadRows, coldStart } = values;
  return { userCol, itemCol, ratingCol, timestampCol, onDuplicates, onBadRows, coldStartStrategy: coldStart };
}
