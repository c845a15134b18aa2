import { DivergedError } from '../../../engine/errors.ts';
import { type KeyColumn, keyCount, keyText } from '../../../engine/keys/key-column.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';

/** The error for a row of a block whose equations have no finite solution. */
export function divergedRow(
  row: number,
  { block: { offsets }, keys }: { readonly block: RatingBlock; readonly keys: KeyColumn },
  regParam: number,
): DivergedError {
  const id = keyText(keys, Math.min(row, keyCount(keys) - 1));
  return new DivergedError(
    `the normal equations of the row ${id} (${offsets[row + 1] - offsets[row]} ratings) are singular or not finite`,
    {
      phase: 'train',
      id,
      advice: `Raise regParam (λ), which is ${regParam}, or scale the ratings down`,
    },
  );
}
