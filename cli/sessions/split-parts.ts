import type { Dataset, TrainTest } from '../../api/dataset.ts';
import type { Session } from '../../api/session.ts';
import type { NamedPart } from '../../api/write-parts.ts';
import type { CommandContext } from '../commands/command.ts';
import type { ColumnValues, ReadValues } from '../options/data/data-options.ts';
import type { SplitValues } from '../options/data/held-out-options.ts';
import { readNamed } from './open-session.ts';

type HeldOut = Pick<SplitValues, 'testFraction' | 'testLeaveOut' | 'testBy'> & {
  readonly seed?: number | undefined;
};

type Run = Pick<CommandContext, 'signal' | 'onEvent'>;

/**
 * Training ratings and held-out ratings, from the flags that `train` and `split` share; undefined without
 * these flags.
 */
export async function heldOutParts(
  all: Dataset,
  { testFraction, testLeaveOut, testBy, seed }: HeldOut,
  { signal, onEvent }: Run,
): Promise<TrainTest | undefined> {
  if (testLeaveOut !== undefined)
    return all.leaveOut(testLeaveOut, {
      by: testBy,
      signal,
      ...(testBy === 'time' ? { onEvent } : { seed }),
    });
  if (testFraction === undefined) return undefined;
  const weights = [1 - testFraction, testFraction] as const;
  const [train, test] =
    testBy === 'time'
      ? await all.timeSplit(weights, { signal, onEvent })
      : all.randomSplit(weights, { seed });
  return { train, test };
}

/** Opens ratings; the user and item columns are named, or found as `train` finds them. */
export async function openPairs(
  session: Session,
  paths: readonly string[],
  values: ReadValues & ColumnValues,
  { signal, onEvent }: Run,
): Promise<Dataset> {
  const { withFoundColumns } = await import('../../api/found-columns.ts');
  return withFoundColumns(
    await readNamed(session, paths, values),
    { roles: ['user', 'item'] },
    { signal, events: onEvent },
  );
}

/** The parts of a split with their names, for flags that `checkSplit` has accepted. */
export async function splitParts(
  all: Dataset,
  values: SplitValues,
  { signal, onEvent }: Run,
): Promise<readonly NamedPart[]> {
  const { folds, before, validationFraction, testFraction, coldItems, coldUsers, seed } = values;
  if (folds !== undefined)
    return all.kFold(folds, { seed }).flatMap((fold, at) => named(fold, `fold-${at + 1}/`));
  if (before !== undefined) {
    const [train, test] = await all.timeSplit({ before }, { signal, onEvent });
    return named({ train, test });
  }
  const cold = coldItems ?? coldUsers;
  if (cold !== undefined) {
    const whole = coldItems === undefined ? 'users' : 'items';
    const [train, test] = all.randomSplit([1 - cold, cold], { seed, whole });
    return named({ train, test });
  }
  if (validationFraction !== undefined && testFraction !== undefined) {
    const weights = [1 - testFraction - validationFraction, validationFraction, testFraction] as const;
    const [train, validation, test] =
      values.testBy === 'time'
        ? await all.timeSplit(weights, { signal, onEvent })
        : all.randomSplit(weights, { seed });
    return [
      { name: 'train', rows: train },
      { name: 'validation', rows: validation },
      { name: 'test', rows: test },
    ];
  }
  const parts = await heldOutParts(all, values, { signal, onEvent });
  if (parts === undefined) throw new Error('no split is named');
  return named(parts);
}

function named({ train, test }: TrainTest, folder = ''): NamedPart[] {
  return [
    { name: `${folder}train`, rows: train },
    { name: `${folder}test`, rows: test },
  ];
}
