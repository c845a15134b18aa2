import { DataError } from '../../engine/errors.ts';

const LARGEST = 2 ** 128 - 2 ** 103;

/**
 * Throws DataError if a feature of a user times the same feature of an item exceeds the largest float32, so
 * that the score of the two cannot be computed.
 */
export function requireFiniteProducts(
  users: Float32Array,
  items: Float32Array,
  rank: number,
  directory: string,
): void {
  // Almost always enough, and fast.
  if (largestOf(users) * largestOf(items) <= LARGEST) return;
  const [ofUsers, ofItems] = [largestOfColumns(users, rank), largestOfColumns(items, rank)];
  const feature = ofUsers.findIndex((size, k) => size * ofItems[k] > LARGEST);
  if (feature < 0) return;
  throw new DataError(
    `feature ${feature} is up to ${ofUsers[feature]} for users and ${ofItems[feature]} for items, whose product exceeds float32`,
    { phase: 'load', file: directory, advice: 'Train the model on ratings of a smaller scale' },
  );
}

function largestOf(values: Float32Array): number {
  let largest = 0;
  for (let at = 0; at < values.length; at++) {
    const size = Math.abs(values[at]);
    if (size > largest) largest = size;
  }
  return largest;
}

/** The largest |value| of each column of a matrix. */
function largestOfColumns(values: Float32Array, columns: number): Float64Array {
  const largest = new Float64Array(columns);
  for (let at = 0; at < values.length;)
    for (let k = 0; k < columns; k++, at++) largest[k] = Math.max(largest[k], Math.abs(values[at]));
  return largest;
}
