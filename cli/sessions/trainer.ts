import type { Dataset } from '../../api/dataset.ts';
import type { FitOptions } from '../../api/fit-options.ts';
import type { Model } from '../../api/model.ts';
import type { RatingOptions, RatingInput as Input } from '../../api/rating-input.ts';
import type { Session } from '../../api/session.ts';
import type { ALS } from '../../api/training/als.ts';
import type { TrainerOptions } from '../../api/training/choose-trainer.ts';
import type { SGD } from '../../api/training/sgd.ts';
import type { UpdateOptions } from '../../api/training/update-options.ts';
import type { CommandContext } from '../commands/command.ts';
import { readAttributes } from '../options/data/attribute-options.ts';
import { algorithmOf, givenParams } from '../options/training/param-options.ts';
import type { TrainingValues } from '../options/training/training-options.ts';
import { knownRows, readNamed, withoutRepeats } from './open-session.ts';
import { heldOutParts } from './split-parts.ts';

type Given = ReadonlySet<string>;

/** The algorithm and parameters from the flags, checked before ratings are read. */
export interface Trainer {
  /** Prepares for these ratings; --algorithm auto reads them first. */
  prepare(session: Session, ratings: Dataset, context: CommandContext): Promise<PreparedTrainer>;
}

export interface PreparedTrainer {
  fit(ratings: Dataset, options: FitOptions): Promise<Model>;
  plan: ALS['plan'];
  /** The reason for the algorithm that --algorithm auto chose. */
  readonly reason?: string;
}

/** Throws UsageError for parameters out of range. */
export async function trainerOf(
  values: TrainingValues & { readonly initModel?: string | undefined },
  given: Given,
): Promise<Trainer> {
  const algorithm = algorithmOf(values);
  if (values.initModel !== undefined) return updater(values.initModel, updateOptions(values, given));
  if (algorithm === 'als') {
    const { ALS } = await import('../../api/training/als.ts');
    const options = { ...givenParams('als', values, given), ...ratingOptions(values) };
    const als = new ALS(options);
    return {
      prepare: async (session, ratings) => {
        const attributes = await readAttributes(session, ratings, values);
        return prepared(Object.keys(attributes).length === 0 ? als : new ALS({ ...options, ...attributes }));
      },
    };
  }
  if (algorithm === 'sgd') {
    const { SGD } = await import('../../api/training/sgd.ts');
    const sgd = new SGD({ ...givenParams('sgd', values, given), ...ratingOptions(values) });
    return { prepare: async () => prepared(sgd) };
  }
  const { chooseTrainer } = await import('../../api/training/choose-trainer.ts');
  const options = {
    ...(givenParams('als', values, given) as TrainerOptions),
    ...ratingOptions(values),
  };
  return {
    prepare: async (session, ratings, { signal, onEvent }) => {
      const attributes = await readAttributes(session, ratings, values);
      const { trainer, reason } = await chooseTrainer(
        ratings,
        { ...options, ...attributes },
        { signal, onEvent },
      );
      onEvent({ type: 'note', text: reason });
      return { ...prepared(trainer), reason };
    },
  };
}

function prepared(trainer: ALS | SGD): PreparedTrainer {
  return {
    fit: (ratings, options) => trainer.fit(ratings, options),
    plan: (ratings, options) => trainer.plan(ratings, options),
  };
}

function updater(directory: string, options: UpdateOptions): Trainer {
  return {
    prepare: async (session, _ratings, { onEvent }) => {
      await session.opened(onEvent);
      const model = await session.loadModel(directory, { onEvent });
      return {
        fit: (ratings, run) => model.update(ratings, { ...options, ...run }),
        plan: (ratings, run) => model.planUpdate(ratings, { ...options, ...run }),
      };
    },
  };
}

/** The flags as options of `model.update`; the model's own values replace missing ones. */
function updateOptions(values: TrainingValues, given: Given): UpdateOptions {
  const ratings = Object.entries(ratingOptions(values)).filter(([name]) =>
    given.has(name === 'coldStartStrategy' ? 'coldStart' : name),
  );
  return { ...givenParams('sgd', values, given), ...Object.fromEntries(ratings) };
}

/** The rating options among the flags. */
export function ratingOptions(
  values: Pick<
    TrainingValues,
    'userCol' | 'itemCol' | 'ratingCol' | 'timestampCol' | 'onDuplicates' | 'onBadRows' | 'coldStart'
  >,
): RatingOptions {
  const { userCol, itemCol, ratingCol, timestampCol, onDuplicates, onBadRows, coldStart } = values;
  return {
    userCol,
    itemCol,
    ratingCol,
    ...(onDuplicates === 'last' ? { timestampCol } : {}),
    onDuplicates,
    onBadRows,
    coldStartStrategy: coldStart,
  };
}

interface TrainingSets {
  readonly train: Dataset;
  readonly test: Dataset | undefined;
}

/**
 * Opens training and held-out ratings. Checks columns and types of both from the files' footers, so that a
 * wrong test path fails before training. Throws DataError.
 */
export async function trainingSets(
  session: Session,
  paths: readonly string[],
  values: TrainingValues,
  context: CommandContext,
): Promise<TrainingSets> {
  const { RatingInput } = await import('../../api/rating-input.ts');
  const { onDuplicates, onBadRows, test, testFraction } = values;
  const { signal } = context;
  const run = { events: withoutRepeats(context.onEvent), signal };
  const found = async (dataset: Dataset, input: Input) => {
    const { rating } = input.columnsOf(dataset);
    const rated = values.implicitPrefs
      ? await (await import('../../api/training/unrated-as-ones.ts')).unratedAsOnes(dataset, rating, run)
      : dataset;
    await input.checkColumns(rated, signal);
    return rated;
  };
  const input = new RatingInput({ onDuplicates, onBadRows });
  const all = await found(await input.found(await readNamed(session, paths, values), run), input);
  const rows = await knownRows(all);
  if (rows !== undefined) {
    context.expect('read', Math.round(rows * (1 - (testFraction ?? 0))));
    context.expect('profile', Math.round(rows * (1 - (testFraction ?? 0))));
  }
  const drawn = await heldOutParts(all, values, context);
  if (drawn !== undefined) return drawn;
  if (test === undefined) return { train: all, test: undefined };
  const heldOut = await input.foundTest(await readNamed(session, test, values), run);
  return { train: all, test: await found(heldOut, new RatingInput({ onBadRows })) };
}
