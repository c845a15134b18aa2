import { codeBytes } from '../connectors/model/index-layout.ts';
import { vectorReader } from '../cpu/tasks/lists/read-vector.ts';
import { rotation } from '../cpu/tasks/lists/rotate.ts';
import type { ListIndex } from '../operators/serving/lists/list-index.ts';

/** Above the rounding errors of float32 in the remainders. */
const ROOM = 1e-4;

/**
 * True if the rows are the vectors of which the columns of an index have differences in 8 bits, as
 * `encode-lists` writes them: a vector is at most the column's remainder away from center and difference.
 *
 * @param rows one row of `width` numbers for each column
 */
export function checkCodes(
  { rank, normalized, centers, starts, codes, guide }: ListIndex,
  columns: readonly number[],
  rows: Float32Array,
  width: number,
): boolean {
  const all = guide.length / 4;
  const numbers = new Float32Array(guide.buffer, guide.byteOffset, guide.length);
  const bytes = new Int8Array(codes.buffer, codes.byteOffset, codes.byteLength);
  const read = vectorReader(rows, { width, rank, normalized });
  const rotate = rotation(rank);
  const vector = new Float32Array(rank);
  return columns.every((column, row) => {
    const list = starts.findLastIndex((start) => start <= column);
    read(row, vector, 0);
    let [away, squares] = [0, 0];
    for (let k = 0; k < rank; k++) {
      squares += vector[k] ** 2;
      vector[k] -= centers[list * rank + k];
    }
    rotate(vector);
    const [remainder, scale] = [numbers[all + column], numbers[2 * all + column]];
    for (let k = 0; k < rank; k++) away += (vector[k] - scale * bytes[column * codeBytes(rank) + k]) ** 2;
    return Math.sqrt(away) <= remainder * (1 + ROOM) + ROOM * 1e-2 * Math.sqrt(squares);
  });
}
