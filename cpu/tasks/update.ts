import type { RowRange } from '../../engine/plan/stages.ts';
import type { TaskHandler } from '../handler.ts';
import { biasColumn, subtractFixed } from './biases.ts';
import {
  isFar,
  lastObjective,
  type RowChunk,
  rowChunks,
  rowColumn,
  runningSum,
  WORKSPACE_BYTES,
  workspaceOf,
} from './row-chunks.ts';
import { biasShift, rowShift } from './row-shifts.ts';
import { exactSolverOf, methodOf } from './solvers.ts';
import type { SolvedTiles } from './tiled-group.ts';
import { solveTiledRows } from './tiled-rows.ts';
import type { Tiling } from '../../operators/tasks/task-types.ts';

/**
 * See `update` of KernelTasks. Rows that are not solved tile by tile and are longer than a chunk are summed
 * piece by piece and solved on their formed A.
 */
export const update: TaskHandler<'update'> = (scope) => {
  const { from, to, rank, cgBelow, cgSteps, settles = false, mean = 0, tiled, only } = scope.params;
  const block = scope.partition('block');
  const offsets = block.columns.offsets as Int32Array;
  const theta = scope.matrix('fixed').pointer;
  const output = scope.matrix('factors');
  const previous = scope.matrix('previous');
  const [fixedBias, bias] = ['fixedBias', 'bias'].map((name) => biasColumn(scope, name));
  const { kernels } = scope;
  const workspace = workspaceOf(scope);
  const [shifts, ownShifts, biases] = ([0, 1, 2] as const).map((which) => rowColumn(scope, which));
  const [ownAt, biasAt] = bias ? [ownShifts.address, biases.address] : [0, 0];
  const size = output.stride * 4;
  const far = isFar(scope.matrix('fixed'));
  const work = output.stride ** 2 / 40;
  const exact = exactSolverOf(scope.params);
  const workPerRow = work * output.stride * exact.factorizations;
  const objective = runningSum(scope);
  const solved: SolvedTiles =
    tiled && only !== 'others'
      ? solveTiledRows(scope, tiled)
      : { rows: 0, ratings: 0, objectives: [0], badRow: -1 };
  objective.view[0] = solved.objectives[0];
  let { badRow, rows: rowsSolved } = solved;
  let [length, total] = [0, 0];
  let bytesUp = 8 * solved.ratings + 4 * solved.rows;
  const others = only === 'tiled' ? [] : tiled ? otherRuns(offsets, from, to, tiled) : [{ from, to }];
  for (const chunk of chunksOf(others, (run) =>
    rowChunks(scope, block, run.from, run.to, work, workPerRow),
  )) {
    const { row, rows, count, indices, values } = chunk;
    const target = output.pointer + row * size;
    const start = previous.pointer + row * size;
    bytesUp += 8 * count + 4 * rows;
    if (fixedBias) subtractFixed(scope, chunk, mean, fixedBias);
    for (let r = 0; r < rows; r++) {
      const n = offsets[row + r + 1] - offsets[row + r];
      shifts.values[r] = rowShift(n, scope.params);
      if (bias) ownShifts.values[r] = biasShift(n, scope.params);
    }
    let bad = -1;
    if (chunk.starts && chunk.ends) {
      bad = kernels.updateRows(
        theta,
        size,
        rank,
        chunk.offsets,
        indices,
        values,
        rows,
        shifts.address,
        ownAt,
        biasAt,
        target,
        start,
        cgBelow,
        cgSteps,
        settles ? 1 : 0,
        exact.method,
        workspace,
        WORKSPACE_BYTES,
        objective.address,
        far,
      );
    } else {
      length = chunk.starts ? count : length + count;
      total = (chunk.starts ? 0 : total) + (bias ? kernels.sumOf(values, count) : 0);
      kernels.accumulateRow(
        theta,
        size,
        indices,
        values,
        count,
        bias ? 1 : 0,
        chunk.starts ? 0 : 1,
        workspace,
      );
      if (chunk.ends) {
        const weight = bias ? length + ownShifts.values[0] : 0;
        const solved = kernels.solveAccumulated(
          size,
          rank,
          shifts.values[0],
          weight,
          total,
          biasAt,
          target,
          start,
          methodOf(length, scope.params),
          cgSteps,
          workspace,
        );
        if (!solved) bad = 0;
        objective.view[0] += lastObjective(scope, workspace, size);
      }
    }
    if (chunk.ends) rowsSolved += rows;
    if (bias && chunk.ends) bias.set(biases.values.subarray(0, rows), row);
    if (bad >= 0) badRow = badRow < 0 ? row + bad : Math.min(badRow, row + bad);
  }
  return {
    rows: rowsSolved,
    bytesUp,
    values: {
      badRow,
      ...(only === 'tiled' ? { objectives: solved.objectives } : { objective: objective.view[0] }),
    },
  };
};

/** The runs of rows that are not in a tiling. */
function* otherRuns(
  offsets: Int32Array,
  from: number,
  to: number,
  { from: least, to: most }: Tiling,
): Generator<RowRange> {
  const isOther = (row: number) =>
    offsets[row + 1] - offsets[row] < least || offsets[row + 1] - offsets[row] > most;
  for (let row = from; row < to;) {
    const first = row;
    while (row < to && isOther(row)) row++;
    if (row > first) yield { from: first, to: row };
    while (row < to && !isOther(row)) row++;
  }
}

function* chunksOf(
  runs: Iterable<RowRange>,
  chunks: (run: RowRange) => Iterable<RowChunk>,
): Generator<RowChunk> {
  for (const run of runs) yield* chunks(run);
}
