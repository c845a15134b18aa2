import { type Data, DataType } from 'apache-arrow';
import { numbersOf } from './columns.ts';
import { isText, numbersOfTexts } from './text-values.ts';

/** Number of nonzero ratings that become 0 in float32, such as 1e-300. */
export function vanishedRatings(given: Data, ratings: Float32Array): number {
  const mayVanish = isText(given.type) || (DataType.isFloat(given.type) && given.type.precision === 2);
  // Nearly all batches have no rating of 0, which V8's built-in search finds out fastest.
  if (!mayVanish || !ratings.includes(0)) return 0;
  const exact = isText(given.type) ? numbersOfTexts(given) : numbersOf(given, Float64Array);
  let vanished = 0;
  for (let row = 0; row < ratings.length; row++)
    if (ratings[row] === 0 && exact[row] !== 0 && !Number.isNaN(exact[row])) vanished++;
  return vanished;
}
