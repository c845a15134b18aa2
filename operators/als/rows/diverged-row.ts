import { DivergedError } from '../../../engine/errors.ts';
import { type KeyColumn, keyCount, keyText } from '../../../engine/keys/key-column.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { largestOfRow, type RowSizes, unsolvedAdvice } from '../unsolved-advice.ts';

/** The error for a row of a block whose equations have no finite solution. */
export function divergedRow(
  row: number,
  { block, keys }: { readonly block: RatingBlock; readonly keys: KeyColumn },
  sizes: Pick<RowSizes, 'params' | 'unit'>,
): DivergedError {
  const id = keyText(keys, Math.min(row, keyCount(keys) - 1));
  const count = block.offsets[row + 1] - block.offsets[row];
  return new DivergedError(
    `the normal equations of the row ${id} (${count} ratings) are singular or not finite`,
    {
      phase: 'train',
      id,
      advice: unsolvedAdvice({ ...sizes, count, largest: largestOfRow(block, row) }),
    },
  );
}
