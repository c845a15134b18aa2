import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../cpu/handler.ts';
import { addRows, normalEquations, placeRows, solveEquations } from '../../cpu/tasks/equations.ts';
import type { Partition } from '../../engine/partition.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';
import { ratingBlock, TestMemory } from './scope.ts';

const COLUMNS = 400;
const mean = 2.5;
const weights = { alpha: 3, base: 1 };
const gamma = Float32Array.from({ length: COLUMNS }, (_, k) => Math.sin(k));
type Kind = 'explicit' | 'biases' | 'implicit';
type Partitions = Readonly<Record<string, Partition>>;

const column = (layout: string, values: Float32Array): Partition => ({
  layout,
  rows: values.length,
  columns: { values },
});

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
      kind === 'biases' ? { fixedBias: column('bias', gamma.subarray(first, first + fixed.rows)) } : {};
    const { rows } = normalEquations(memory.scope(params, { block, ...bias }, { fixed, equations }));
    expect(rows).toBe(edges[k + 1] - edges[k]);
  }
}

function rowsOf(memory: TestMemory, { pointer, rows, columns, stride }: MatrixView): Float32Array[] {
  return Array.from({ length: rows }, (_, row) => memory.floats(pointer + 4 * row * stride, columns));
}

const solvers = {
  cholesky: { cgBelow: 0, cgSteps: 0 },
  'CG, 4 steps': { cgBelow: 2 ** 31 - 1, cgSteps: 4 },
  'CG below 60 ratings': { cgBelow: 60, cgSteps: 3 },
  'CG that settles': { cgBelow: 2 ** 31 - 1, cgSteps: 3, settles: true },
  'x >= 0': { cgBelow: 0, cgSteps: 0, exact: 'nonnegative' as const },
};

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
        memory.scope(
          { rowFrom: 2 },
          { rows: column('bias', Float32Array.of(8, 9)), whole: column('bias', biases) },
          {},
        ),
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
