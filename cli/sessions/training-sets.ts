import type { Dataset } from '../../api/dataset.ts';
import type { Session } from '../../api/session.ts';
import type { CommandContext } from '../commands/command.ts';
import { readSpec } from '../options/data/text-options.ts';
import type { TrainingValues } from '../options/training/training-options.ts';
import { knownRows } from './open-session.ts';

export interface TrainingSets {
  readonly train: Dataset;
  readonly test: Dataset | undefined;
}

/**
 * Opens the ratings to train on and those held out. Checks columns and types of both by the files' footers, so
 * that a wrong test path fails before training. Throws DataError.
 */
export async function trainingSets(session: Session, paths: readonly string[], values: TrainingValues, context: CommandContext): Promise<TrainingSets> {
  const { SelectRatings } = await import('../../operators/ratings/rows/select-ratings.ts');
  const { userCol, itemCol, ratingCol, timestampCol, onDuplicates, onBadRows, test, testFraction } = values;
  const rated = async (dataset: Dataset) => {
    if (!values.implicitPrefs) return dataset;
    const { unratedAsOnes } = await import('../../api/training/unrated-as-ones.ts');
    return unratedAsOnes(dataset, ratingCol, { events: context.onEvent, signal: context.signal });
  };
  const all = await rated(await session.read.any(paths, readSpec(values)));
  const timestamp = onDuplicates === 'last' ? (timestampCol ?? 'timestamp') : undefined;
  await all.pipe(new SelectRatings({ user: userCol, item: itemCol, rating: ratingCol, timestamp }, onBadRows)).schema({ signal: context.signal });
  const rows = await knownRows(all);
  if (rows !== undefined) {
    context.expect('read', Math.round(rows * (1 - (testFraction ?? 0))));
    context.expect('profile', Math.round(rows * (1 - (testFraction ?? 0))));
  }
  const drawn = await drawnSets(all, values, context);
  if (drawn !== undefined) return drawn;
  if (test === undefined) return { train: all, test: undefined };
  const heldOut = await rated(await session.read.any(test, readSpec(values)));
  await heldOut.pipe(new SelectRatings({ user: userCol, item: itemCol, rating: ratingCol }, onBadRows)).schema({ signal: context.signal });
  return { train: all, test: heldOut };
}

/** The sets where a part of the ratings is held out. */
async function drawnSets(all: Dataset, { testFraction, testLeaveOut, testBy, userCol, itemCol, timestampCol, seed }: TrainingValues, { signal }: CommandContext): Promise<TrainingSets | undefined> {
  if (testLeaveOut !== undefined) return all.leaveOut(testLeaveOut, { by: testBy, userCol, itemCol, signal, ...(testBy === 'time' ? { timestampCol } : { seed }) });
  if (testFraction === undefined) return undefined;
  const weights = [1 - testFraction, testFraction] as const;
  const [train, test] = testBy === 'time' ? await all.timeSplit(weights, { timestampCol, signal }) : all.randomSplit(weights, { seed, userCol, itemCol });
  return { train, test };
}
