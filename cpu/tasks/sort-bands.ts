import type { TaskHandler } from '../handler.ts';

/** See SortBandsTask. */
export const sortBands: TaskHandler = (scope) => {
  const { from, to, columns, ordered } = scope.params as { from: number; to: number; columns: number; ordered: boolean };
  const all = scope.partition('triples').columns.triples as Uint32Array;
  const firstRow = scope.partition('bands').columns.firstRow as Int32Array;
  const { offsets, indices, values } = scope.partition('block').columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const columnCursors = new Int32Array(ordered ? 0 : columns + 1);
  let spare = new Uint32Array(0);
  for (let band = from; band < to && !scope.cancelled(); band++) {
    const [low, high] = [offsets[firstRow[band]], offsets[firstRow[band + 1]]];
    let triples = all.subarray(3 * low, 3 * high);
    if (!ordered) {
      if (spare.length < triples.length) spare = new Uint32Array(triples.length);
      sortByColumn(triples, columnCursors, spare);
      triples = spare.subarray(0, triples.length);
    }
    const cursors = offsets.slice(firstRow[band], firstRow[band + 1]);
    const base = firstRow[band];
    for (let t = 0; t < triples.length; t += 3) {
      const place = cursors[triples[t] - base]++;
      indices[place] = triples[t + 1];
      bits[place] = triples[t + 2];
    }
  }
  return { rows: offsets[firstRow[to]] - offsets[firstRow[from]] };
};

/** A counting sort of triples by their column, stable, into `sorted`. `cursors`: columns + 1 numbers of scratch. */
function sortByColumn(triples: Uint32Array, cursors: Int32Array, sorted: Uint32Array): void {
  cursors.fill(0);
  for (let t = 1; t < triples.length; t += 3) cursors[triples[t] + 1]++;
  for (let column = 1; column < cursors.length; column++) cursors[column] += cursors[column - 1];
  for (let t = 0; t < triples.length; t += 3) {
    const place = 3 * cursors[triples[t + 1]]++;
    sorted[place] = triples[t];
    sorted[place + 1] = triples[t + 1];
    sorted[place + 2] = triples[t + 2];
  }
}
