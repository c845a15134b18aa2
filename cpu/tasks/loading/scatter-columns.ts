import { sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';
import { LoadingMemory } from './loading-memory.ts';
import { countByBand, scatterByBand, type WriteNumbers } from './scatter-by-band.ts';
import { bandsOf, keysOf } from './scatter-pairs.ts';

/** See `count-columns` of KernelTasks. */
export const countColumns: TaskHandler<'count-columns'> = (scope) => {
  const { bands, starts, rowBits } = scope.params;
  const { offsets, keys: columns } = keysOf(scope.partition('block'));
  const { placeOf } = bandsOf(scope);
  const counts = sharedArray(Int32Array, (starts.length - 1) * bands);
  const memory = LoadingMemory.own();
  const [first, end] = [offsets[starts[0]], offsets[starts[starts.length - 1]]];
  for (let group = 0; group + 1 < starts.length && !scope.cancelled(); group++) {
    const codes = columns.subarray(offsets[starts[group]], offsets[starts[group + 1]]);
    countByBand(
      memory,
      { codes, maps: [placeOf] },
      rowBits,
      counts.subarray(group * bands, (group + 1) * bands),
    );
  }
  return {
    rows: end - first,
    partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } },
  };
};

/** See `scatter-columns` of KernelTasks. */
export const scatterColumns: TaskHandler<'scatter-columns'> = (scope) => {
  const { offsets, keys: columns, bits } = keysOf(scope.partition('block'));
  const { placeOf } = bandsOf(scope);
  // A private copy, since inputs must not be written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { from, to } = scope.params;
  const [first, end] = [offsets[from], offsets[to]];
  const memory = LoadingMemory.own();
  /**
   * Returns a function that writes the row of each rating, for one piece of consecutive ratings after the
   * other. It continues at the last row of the previous piece.
   */
  const writer = (address: number): WriteNumbers => {
    memory
      .words(address, to + 1 - from)
      .set(new Uint32Array(offsets.buffer, offsets.byteOffset + 4 * from, to + 1 - from));
    let row = from;
    return (start, stop, at) =>
      void (row = memory.kernels.numberRows(
        address + 4 * (row - from),
        row,
        first + start,
        first + stop,
        at,
      ));
  };
  const rows = { codes: columns.subarray(first, end), maps: [placeOf] };
  scatterByBand(
    memory,
    { rows, columns: { words: to + 1 - from, writer }, bits: bits.subarray(first, end) },
    scope.params,
    cursors,
    keysOf(scope.partition('transposed')),
  );
  return { rows: end - first };
};
