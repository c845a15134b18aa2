import type { Dataset } from '../../api/dataset.ts';
import type { RatingInput as Input } from '../../api/rating-input.ts';
import type { Session } from '../../api/session.ts';
import type { CommandContext } from '../commands/command.ts';
import type { TrainingValues } from '../options/training/training-options.ts';
import { knownRows } from './open-session.ts';
import { readNamed, withoutRepeats } from './read-ratings.ts';
import { heldOutParts } from './split-parts.ts';

export interface TrainingSets {
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
