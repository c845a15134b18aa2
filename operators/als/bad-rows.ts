import { DivergedError } from '../../engine/errors.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import { lengthOfRow, type Ratings } from '../ratings/ratings.ts';
import type { ValuesOf } from '../tasks/tasks.ts';
import type { AlsData } from './bind/als-data.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';
import { largestOfRow, unsolvedAdvice } from './unsolved-advice.ts';

/** Throws DivergedError if an iteration has a row without a finite solution. */
export function requireSolved(
  number: number,
  results: StepResults,
  {
    data,
    slices,
    params,
    unit,
  }: {
    readonly data: AlsData;
    /** The row ranges of the tasks, by stage and part. */
    readonly slices: Readonly<Record<string, readonly (readonly RowRange[])[]>>;
    readonly params: SizedAlsParams;
    readonly unit: number;
  },
): void {
  const blocks = { users: data.byUser, items: data.byItem };
  for (const side of ['items', 'users'] as const) {
    const bad = badRow(solvedValues(results, side), slices[`update-${side}`], blocks[side].rows);
    if (bad === undefined) continue;
    const id = keyText(data[side], bad);
    const count = lengthOfRow(blocks[side], bad);
    const largest = largestOf(blocks[side], bad);
    throw new DivergedError(
      `iteration ${number}, side ${side}: the normal equations of ${side === 'users' ? 'user' : 'item'} ${id} (${count} ratings) are singular or not finite`,
      {
        phase: 'train',
        iteration: number,
        side,
        id,
        advice: unsolvedAdvice({ params, unit, count, largest }),
      },
    );
  }
}

/** Values of the tasks that solve the rows of a side, by part. */
function solvedValues(results: StepResults, side: 'users' | 'items'): ValuesOf<'update'>[][] {
  return (['update', 'update-implicit', 'solve-equations', 'end-gradients'] as const).flatMap(
    (kernel) => results.byPart(`update-${side}`, kernel, 'factors') as ValuesOf<'update'>[][],
  );
}

/**
 * The index of the first row, over all parts of a side, whose solution is not finite. A task reports the
 * row's index within its part; a part's values have the order of its slices (row ranges).
 */
function badRow(
  values: readonly (readonly ValuesOf<'update'>[])[],
  slices: readonly (readonly RowRange[])[],
  rows: number,
): number | undefined {
  let first = 0;
  for (const [part, ranges] of slices.entries()) {
    const bad = values[part]?.find((value) => value.badRow >= 0);
    if (bad !== undefined) return Math.min(first + bad.badRow, rows - 1);
    first += ranges.at(-1)?.to ?? 0;
  }
  return undefined;
}

/** The largest |r| of a row; 0 if its ratings are in a file, or on devices alone. */
function largestOf({ parts }: Ratings, row: number): number {
  const part = parts.find(({ from, rows }) => row < from + rows);
  const blocks = part?.blocks ?? [];
  return blocks.reduce((most, { block }) => Math.max(most, largestOfRow(block, row - part!.from)), 0);
}
