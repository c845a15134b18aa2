import { sharedArray } from '../../engine/partition.ts';
import { COUNT_BEFORE_ROWS, countBeforeKernel } from './count-before.ts';
import { discountExcludedKernel } from './discount-excluded.ts';
import { LISTED_THREADS, listedScoresKernel } from './listed-scores.ts';
import type { GpuTaskHandler } from '../handler.ts';

/**
 * Multiplications and additions of one submission: a slow GPU is not taken for a hung one, and cancelling is
 * heard between two.
 */
const SUBMISSION_WORK = 5e11;

/**
 * See `rank-listed` of KernelTasks: scores the listed columns, takes the excluded columns before each off,
 * and counts all.
 */
export const rankListed: GpuTaskHandler<'rank-listed'> = async (scope) => {
  const { from, to, rank, depth = 2 ** 31 - 1 } = scope.params;
  const { gpu } = scope;
  const [rowFactors, columnFactors, listed] = [
    scope.matrix('rowFactors'),
    scope.matrix('columnFactors'),
    scope.block('listed'),
  ];
  const exclude = scope.has('exclude') ? scope.block('exclude') : undefined;
  const [first, last] = [listed.offsets[from], listed.offsets[to]];
  const places = sharedArray(Uint32Array, last - first);
  const rows = rowsThatList(listed.offsets, from, to);
  if (rows.length > 0 && !scope.cancelled()) {
    const [scoring, counting, discounting] = await Promise.all([
      gpu.compile(listedScoresKernel, {}),
      gpu.compile(countBeforeKernel, {}),
      exclude && gpu.compile(discountExcludedKernel, {}),
    ]);
    const [rowList, thresholds, counts] = [
      await gpu.scratch('rows that list', rows.byteLength),
      await gpu.scratch('listed scores', 8 * places.length),
      await gpu.scratch('listed counts', 4 * places.length),
    ];
    await gpu.upload(rowList, rows);
    const quads = rowFactors.stride / 4;
    const bindings = {
      row_factors: rowFactors.values,
      column_factors: columnFactors.values,
      offsets: listed.rowPointers,
      listed: listed.indices,
      thresholds,
      counts,
    };
    const pass = gpu
      .pass('listed-scores')
      .dispatch(
        scoring,
        bindings,
        { from_row: from, to_row: to, first, last, quads },
        Math.ceil(places.length / LISTED_THREADS),
      );
    // Excluded columns are taken off first, so that a count only grows afterwards.
    if (exclude && discounting)
      pass.dispatch(
        discounting,
        { ...bindings, exclude_offsets: exclude.rowPointers, excluded: exclude.indices },
        { from_row: from, to_row: to, quads, first },
        to - from,
      );
    let done: Promise<unknown> = pass.submit();
    const uniforms = { columns: columnFactors.rows, quads, slabs: Math.ceil(rank / 8), first, depth };
    const groups = Math.max(
      1,
      Math.floor(SUBMISSION_WORK / (COUNT_BEFORE_ROWS * 2 * Math.max(1, rank * columnFactors.rows))),
    );
    for (let row = 0; row < rows.length && !scope.cancelled(); row += groups * COUNT_BEFORE_ROWS) {
      if (row > 0) await done;
      const some = Math.min(groups * COUNT_BEFORE_ROWS, rows.length - row);
      const counted = gpu
        .pass('count-before')
        .dispatch(
          counting,
          { ...bindings, rows: rowList },
          { ...uniforms, from_row: row, rows: some },
          Math.ceil(some / COUNT_BEFORE_ROWS),
        )
        .submit();
      done = Promise.all([done, counted]);
    }
    // The next use of the counts comes behind this copy of them.
    await Promise.all([done, gpu.download(counts, places, 0, scope.submitted)]);
  }
  return {
    rows: to - from,
    bytesUp: rows.byteLength,
    bytesDown: places.byteLength,
    partitions: { places: { layout: 'places', rows: places.length, columns: { values: places } } },
  };
};

function rowsThatList(offsets: Int32Array, from: number, to: number): Uint32Array {
  const rows = sharedArray(Uint32Array, to - from);
  let count = 0;
  for (let row = from; row < to; row++) if (offsets[row + 1] > offsets[row]) rows[count++] = row;
  return rows.subarray(0, count);
}
