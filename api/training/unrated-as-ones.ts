import type { Schema } from 'apache-arrow';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type LogicalPlan, operatorsOf } from '../../engine/stream/logical-plan.ts';
import type { TrainingWarning } from '../../operators/evaluation/model-warnings.ts';
import { isAmountName, isIdName, isNamedLike } from '../../operators/ratings/rows/column-names.ts';
import { columnNames, isNumeric } from '../../operators/ratings/rows/columns.ts';
import { Ones } from '../../operators/ratings/rows/select-ratings.ts';
import type { Dataset } from '../dataset.ts';

/** Name of the rating column if the caller gives none. */
const DEFAULT_COLUMN = 'rating';

/**
 * For implicit data without a rating column: the only column of numbers with a usual name of amounts, such as
 * `plays` or `quantity`, becomes the rating, with a note. If there is none, each pair gets a rating of 1, with
 * a note, or with a warning if other numbers are left unused. Other data are unchanged. A column that the
 * caller names must exist.
 */
export async function unratedAsOnes(
  ratings: Dataset,
  ratingCol: string,
  { events, signal }: Pick<ExecutionContext, 'events' | 'signal'>,
): Promise<Dataset> {
  const schema = await ratings.schema({ signal });
  if (ratingCol !== DEFAULT_COLUMN || schema.fields.some(({ name }) => name === ratingCol)) return ratings;
  const numbers = possibleRatings(schema, Object.values(ratings.columns));
  const amounts = numbers.filter(isAmountName);
  if (amounts.length === 1) {
    events({
      type: 'note',
      text: `a column is recognised by its name: rating is "${amounts[0]}"; another is chosen with ratingCol`,
    });
    return ratings.withColumnNames({ rating: amounts[0] });
  }
  const rated = ratings.pipe(new Ones(ratingCol, numbers));
  for (const { code, text } of unusedRatings(rated.plan)) events({ type: 'warning', code, text });
  if (numbers.length === 0)
    events({
      type: 'note',
      text: `there is no column "${ratingCol}" among ${columnNames(schema)}: each pair counts as a rating of 1`,
    });
  return rated;
}

/** The warning about columns of numbers that implicit data without a rating column leave unused. */
export function unusedRatings(plan: LogicalPlan): TrainingWarning[] {
  return operatorsOf(plan).flatMap((operator): TrainingWarning[] => {
    if (!(operator instanceof Ones) || operator.unused.length === 0) return [];
    const names = operator.unused.map((name) => `"${name}"`).join(', ');
    return [
      {
        code: 'unused-numbers',
        text: `there is no column "${operator.column}": each pair counts as a rating of 1, and ${names} ${operator.unused.length === 1 ? 'is' : 'are'} not used. If the numbers say how often or how much, name the column with ratingCol`,
      },
    ];
  });
}

/** Columns of numbers that are not ids, times or among `taken`. */
function possibleRatings({ fields }: Schema, taken: readonly string[]): string[] {
  return fields
    .filter(({ name, type }) => isNumeric(type) && !taken.includes(name) && !isIdName(name))
    .map(({ name }) => name)
    .filter((name) => !(['user', 'item', 'timestamp'] as const).some((role) => isNamedLike(name, role)));
}
