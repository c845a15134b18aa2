import type { ExecutionContext } from '../../engine/run/context.ts';
import { columnNames } from '../../operators/ratings/rows/columns.ts';
import { Ones } from '../../operators/ratings/rows/ones.ts';
import type { Dataset } from '../dataset.ts';

/** Name of the rating column if the caller gives none. */
const DEFAULT_COLUMN = 'rating';

/**
 * For implicit data without a rating column: the pairs with a rating of 1 each, and a note about it. Other
 * data are unchanged. A column that the caller names must exist.
 */
export async function unratedAsOnes(
  ratings: Dataset,
  ratingCol: string,
  { events, signal }: Pick<ExecutionContext, 'events' | 'signal'>,
): Promise<Dataset> {
  const schema = await ratings.schema({ signal });
  if (ratingCol !== DEFAULT_COLUMN || schema.fields.some(({ name }) => name === ratingCol)) return ratings;
  events({
    type: 'note',
    text: `there is no column "${ratingCol}" among ${columnNames(schema)}: each pair counts as a rating of 1`,
  });
  return ratings.pipe(new Ones(ratingCol));
}
