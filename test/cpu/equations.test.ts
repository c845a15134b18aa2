/**
 * Data-parallel ALS on a CPU: equations compared with their float64 twins, and the solutions of sums over
 * vertical parts compared with `update`.
 */
import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../cpu/handler.ts';
import { equationsOfRow } from '../../cpu/reference/normal-equations.ts';
import { type CompressedRows, verticalParts } from '../../cpu/reference/vertical-parts.ts';
import { addRows, normalEquations, placeRows, solveEquations } from '../../cpu/tasks/equations.ts';
import { gram as gramTask } from '../../cpu/tasks/implicit.ts';
import { CHUNK_RATINGS } from '../../cpu/tasks/row-chunks.ts';
import { updateImplicit, update } from '../../cpu/tasks/update.ts';
import type { Partition } from '../../engine/partition.ts';
import { equationColumns, equationLayout } from '../../operators/tasks/equation-tasks.ts';
import { isDeep } from '../support/deep.ts';
import {
  builds,
  centredRow,
  columnOf,
  liftedMatrix,
  ratingBlock,
  relativeDistance,
  rowOf,
  TestMemory,
} from './scope.ts';

const lengths = [0, 1, 2, 7, 8, 9, 31, 33, 64, 65, 97, 300, 1100, 0];
const COLUMNS = 400;
const mean = 2.5;
const weights = { alpha: 3, base: 1 };
const gamma = Float32Array.from({ length: COLUMNS }, (_, k) => Math.sin(k));
type Kind = 'explicit' | 'biases' | 'implicit';
const kinds: readonly Kind[] = ['explicit', 'biases', 'implicit'];
type Partitions = Readonly<Record<string, Partition>>;

/** Levels far from 0 leave some features at 0 where x >= 0. */
const lifted = (memory: TestMemory, rank: number) => liftedMatrix(memory, COLUMNS, rank);

/** The equations of a row in float64. */
function twinOf(memory: TestMemory, kind: Kind, theta: MatrixView, block: Partition, row: number) {
  const biases = kind === 'biases';
  const ratings = biases ? centredRow(block, row, mean, gamma) : rowOf(block, row);
  return equationsOfRow(memory.values(theta), theta.stride, theta.columns, ratings, {
    biases,
    ...(kind === 'implicit' ? { implicit: weights } : {}),
  });
}

function zeros(memory: TestMemory, rows: number, columns: number): MatrixView {
  const stride = Math.ceil(columns / 8) * 8;
  const pointer = memory.allocate(rows * stride * 4);
  memory.floats(pointer, rows * stride).fill(0);
  return { pointer, rows, columns, stride };
}

/**
 * Adds a block's ratings to equations, slice by slice. `first`: the row of all of θ that is row 0 of `fixed`.
 */
function add(
  memory: TestMemory,
  kind: Kind,
  block: Partition,
  fixed: MatrixView,
  equations: MatrixView,
  {
    first = 0,
    cuts = [],
    rowStart = 0,
    range = [0, block.rows],
  }: { first?: number; cuts?: readonly number[]; rowStart?: number; range?: readonly [number, number] } = {},
) {
  const edges = [range[0], ...cuts, range[1]];
  for (let k = 0; k + 1 < edges.length; k++) {
    const params = {
      from: edges[k],
      to: edges[k + 1],
      rank: fixed.columns,
      rowStart,
      ...(kind === 'biases' ? { mean } : {}),
      ...(kind === 'implicit' ? { implicit: weights } : {}),
    };
    const bias: Partitions =
      kind === 'biases' ? { fixedBias: columnOf(gamma.subarray(first, first + fixed.rows)) } : {};
    const { rows } = normalEquations(memory.scope(params, { block, ...bias }, { fixed, equations }));
    expect(rows).toBe(edges[k + 1] - edges[k]);
  }
}

function rowsOf(memory: TestMemory, { pointer, rows, columns, stride }: MatrixView): Float32Array[] {
  return Array.from({ length: rows }, (_, row) => memory.floats(pointer + 4 * row * stride, columns));
}

describe.each(builds)('normal equations in memory, %s', (build) => {
  describe.each(kinds)('%s', (kind) => {
    it.each(isDeep ? [1, 2, 3, 8, 10, 63, 64, 100, 128] : [1, 8, 63])(
      'are added to those that are there, rank %i',
      (rank) => {
        const memory = new TestMemory(build);
        const theta = lifted(memory, rank);
        const block = ratingBlock(lengths, COLUMNS, 2);
        const equations = zeros(memory, lengths.length, equationColumns(rank, kind === 'biases'));
        for (const row of rowsOf(memory, equations)) row.fill(3);
        add(memory, kind, block, theta, equations);
        rowsOf(memory, equations).forEach((found, row) => {
          const twin = twinOf(memory, kind, theta, block, row);
          expect(found.length).toBe(twin.length);
          const largest = twin.reduce((most, value) => Math.max(most, Math.abs(value)), 3);
          const worst = twin.reduce((most, value, at) => Math.max(most, Math.abs(found[at] - 3 - value)), 0);
          expect(worst, `row of ${lengths[row]}`).toBeLessThan(2e-6 * largest);
          expect(found[equationLayout(rank).n]).toBe(3 + lengths[row]);
        });
      },
    );

    it('have the same bits for any cut of the rows, and have rows longer than a chunk', () => {
      const [memory, rank] = [new TestMemory(build, 64), 12];
      const theta = lifted(memory, rank);
      const all = [9, 2 * CHUNK_RATINGS + 33, 50, CHUNK_RATINGS - 1, CHUNK_RATINGS, CHUNK_RATINGS + 1, 3];
      const block = ratingBlock(all, COLUMNS, 2);
      const columns = equationColumns(rank, kind === 'biases');
      const [whole, cut, last] = [
        zeros(memory, all.length, columns),
        zeros(memory, all.length, columns),
        zeros(memory, 3, columns),
      ];
      add(memory, kind, block, theta, whole);
      add(memory, kind, block, theta, cut, { cuts: [1, 2, 5] });
      add(memory, kind, block, theta, last, { rowStart: 4, range: [4, 7] });
      expect(rowsOf(memory, cut)).toEqual(rowsOf(memory, whole));
      expect(rowsOf(memory, last)).toEqual(rowsOf(memory, whole).slice(4));
      rowsOf(memory, whole).forEach((found, row) => {
        const twin = twinOf(memory, kind, theta, block, row);
        expect(relativeDistance(found, twin), `row of ${all[row]}`).toBeLessThan(1e-6);
      });
    });
  });
});

const solvers = {
  cholesky: { cgBelow: 0, cgSteps: 0 },
  'CG, 4 steps': { cgBelow: 2 ** 31 - 1, cgSteps: 4 },
  'CG below 60 ratings': { cgBelow: 60, cgSteps: 3 },
  'CG that settles': { cgBelow: 2 ** 31 - 1, cgSteps: 3, settles: true },
  'x >= 0': { cgBelow: 0, cgSteps: 0, exact: 'nonnegative' as const },
};

describe.each(builds)('rows solved from sums over vertical parts, %s', (build) => {
  describe.each(kinds)('%s', (kind) => {
    it.each(
      Object.entries(solvers).flatMap(([name, solver], number) =>
        [1, 2, 3, 5].filter((_, at) => isDeep || (at + number) % 2 === 0).map((p) => ({ name, solver, p })),
      ),
    )('are those of update: $name, $p parts', ({ solver, p }) => {
      const [memory, rank] = [new TestMemory(build), 20];
      const theta = lifted(memory, rank);
      const block = ratingBlock(lengths, COLUMNS, 2);
      const regularization = { lambda: 0.05, exponent: 0.9, offset: 0.5, damping: 4 };
      const params = { ...solver, ...regularization, rank, from: 0, to: lengths.length };
      const [previous, expected, found] = [
        memory.matrix(lengths.length, rank, 3),
        memory.matrix(lengths.length, rank, 4),
        memory.matrix(lengths.length, rank, 4),
      ];
      const [expectedBias, foundBias] = [
        new Float32Array(lengths.length).fill(9),
        new Float32Array(lengths.length).fill(9),
      ];
      const shifts = columnOf(
        Float32Array.from(lengths, (n) => 0.4 + 0.01 * n),
        'row-shifts',
      );
      const gram = zeros(memory, theta.stride, theta.stride);
      if (kind === 'implicit')
        gramTask(memory.scope({ from: 0, to: rank, rank, weight: 0.02 }, {}, { factors: theta, gram }));

      const biases = { fixedBias: columnOf(gamma), bias: columnOf(expectedBias) };
      const whole =
        kind === 'implicit'
          ? updateImplicit(
              memory.scope(
                { ...params, ...weights },
                { block, shifts },
                { fixed: theta, previous, gram, factors: expected },
              ),
            )
          : update(
              memory.scope(
                { ...params, mean },
                { block, ...(kind === 'biases' ? biases : {}) },
                { fixed: theta, previous, factors: expected },
              ),
            );

      const columns = equationColumns(rank, kind === 'biases');
      const sum = zeros(memory, lengths.length, columns);
      for (const { first, last, ...part } of verticalParts(
        block.columns as unknown as CompressedRows,
        COLUMNS,
        p,
      )) {
        const fixed = { ...theta, pointer: theta.pointer + first * theta.stride * 4, rows: last - first };
        const partial = zeros(memory, lengths.length, columns);
        add(memory, kind, { ...block, columns: { ...part } }, fixed, partial, { first });
        addRows(memory.scope({ from: 0, to: 5 }, {}, { addend: partial, sum }));
        addRows(memory.scope({ from: 5, to: lengths.length }, {}, { addend: partial, sum }));
      }
      const inputs: Partitions =
        kind === 'implicit' ? { shifts } : kind === 'biases' ? { bias: columnOf(foundBias) } : {};
      const matrices = { equations: sum, previous, factors: found, ...(kind === 'implicit' ? { gram } : {}) };
      for (const [from, to] of [
        [0, 6],
        [6, lengths.length],
      ])
        expect(solveEquations(memory.scope({ ...params, from, to }, inputs, matrices)).values?.badRow).toBe(
          -1,
        );

      expect(whole.values?.badRow).toBe(-1);
      const [solved, twins] = [rowsOf(memory, found), rowsOf(memory, expected)];
      lengths.forEach((n, row) => {
        if (n === 0)
          return expect([...solved[row], kind === 'biases' ? foundBias[row] : 0]).toEqual(
            Array<number>(rank + 1).fill(0),
          );
        expect(relativeDistance(solved[row], twins[row]), `row of ${n}`).toBeLessThan(2e-4);
        if (kind === 'biases') expect(Math.abs(foundBias[row] - expectedBias[row])).toBeLessThan(2e-4);
        return undefined;
      });
    });
  });

  it('name the first row whose solution is not finite', () => {
    const [memory, rank] = [new TestMemory(build), 10];
    const equations = zeros(memory, 6, equationColumns(rank, false));
    add(
      memory,
      'explicit',
      ratingBlock([4, 5, 6, 7, 8, 9], COLUMNS, 2),
      memory.matrix(COLUMNS, rank, 1),
      equations,
    );
    for (const row of [4, 2]) rowsOf(memory, equations)[row][equationLayout(rank).b] = Number.NaN;
    const factors = memory.matrix(6, rank, 3);
    for (const solver of [solvers.cholesky, solvers['CG, 4 steps'], solvers['x >= 0']]) {
      const solve = (from: number) =>
        solveEquations(
          memory.scope(
            { ...solver, lambda: 0.05, rank, from, to: 6 },
            {},
            { equations, previous: factors, factors },
          ),
        ).values?.badRow;
      expect([solve(0), solve(3), solve(5)]).toEqual([2, 4, -1]);
    }
  });
});

describe('equations of another shape', () => {
  it('are refused, with the shape that is needed', () => {
    const [memory, rank] = [new TestMemory('simd'), 10];
    const block = ratingBlock([4, 5, 6], COLUMNS, 2);
    const theta = memory.matrix(COLUMNS, rank, 1);
    expect(() => add(memory, 'biases', block, theta, zeros(memory, 3, equationColumns(rank, false)))).toThrow(
      'a matrix of 3 x 66 has no place for equations of 3 rows and rank 10 with biases, 77 columns',
    );
    expect(() =>
      add(memory, 'explicit', block, theta, zeros(memory, 2, equationColumns(rank, false))),
    ).toThrow('a matrix of 2 x 66 has no place for equations of 3 rows');
    const factors = memory.matrix(3, rank, 3);
    expect(() =>
      solveEquations(
        memory.scope(
          { ...solvers.cholesky, lambda: 0.05, rank: 9, from: 0, to: 3 },
          {},
          { equations: zeros(memory, 3, 66), previous: factors, factors },
        ),
      ),
    ).toThrow(
      'task solve-equations: a matrix of 3 x 66 has no place for equations of 3 rows and rank 9, 55 columns',
    );
  });
});

describe('rows of matrices', () => {
  const memory = new TestMemory('simd');

  it('of a part take their place in the whole, as do biases', () => {
    const [part, whole] = [memory.matrix(3, 10, 5), memory.matrix(8, 10, 6)];
    const before = rowsOf(memory, whole).map((row) => [...row]);
    expect(placeRows(memory.scope({ rowFrom: 4 }, {}, { rows: part, whole })).rows).toBe(3);
    const rows = rowsOf(memory, part).map((row) => [...row]);
    expect(rowsOf(memory, whole).map((row) => [...row])).toEqual([...before.slice(0, 4), ...rows, before[7]]);
    const biases = Float32Array.of(1, 2, 3, 4, 5);
    expect(
      placeRows(
        memory.scope({ rowFrom: 2 }, { rows: columnOf(Float32Array.of(8, 9)), whole: columnOf(biases) }, {}),
      ).rows,
    ).toBe(2);
    expect([...biases]).toEqual([1, 2, 8, 9, 5]);
  });

  it('of another shape are refused', () => {
    const [narrow, wide, short] = [memory.matrix(4, 8, 1), memory.matrix(4, 20, 1), memory.matrix(3, 8, 1)];
    expect(() => addRows(memory.scope({ from: 0, to: 3 }, {}, { addend: short, sum: narrow }))).toThrow(
      '3 x 8 numbers cannot be added to 4 x 8',
    );
    expect(() => placeRows(memory.scope({ rowFrom: 0 }, {}, { rows: narrow, whole: wide }))).toThrow(
      'rows of 8 numbers do not fit rows of 20',
    );
  });
});
