/** Rows for the tests of the tiled kernels, and the task that solves them. */
import { expect } from 'vitest';
import type { MatrixView } from '../../../cpu/handler.ts';
import { update } from '../../../cpu/tasks/update.ts';
import type { Partition } from '../../../engine/partition.ts';
import { columnOf, ratingBlock, type TestMemory } from '../scope.ts';
import type { RowRegularization, Tiling } from '../../../operators/tasks/task-types.ts';

/** Of the tests' Θ: its last tile holds 40 rows. */
export const COLUMNS = 1000;
export const tiled: Tiling = { from: 1, to: 500_000, tileRows: 64 };
export const lambda = 0.05;
export const mean = 2.5;
export const gamma = Float32Array.from({ length: COLUMNS }, (_, k) => Math.sin(k));

/** The columns `first`, `first + step`, .. of `count` ratings. */
export const every = (count: number, first: number, step = 1) =>
  Array.from({ length: count }, (_, k) => first + k * step);

/** A rating-block with these columns in its rows, ratings 0.5 .. 5. */
export function blockOf(columns: readonly (readonly number[])[]): Partition {
  const block = ratingBlock(
    columns.map(({ length }) => length),
    COLUMNS,
    2,
  );
  (block.columns.indices as Uint32Array).set(columns.flat());
  return block;
}

export interface Given {
  readonly memory: TestMemory;
  readonly theta: MatrixView;
  readonly block: Partition;
  /** The rows that CG starts from; default: random ones. */
  readonly previous?: MatrixView;
}

export interface Asked extends Partial<RowRegularization> {
  readonly cgSteps: number;
  readonly tiled?: Tiling;
  readonly biased?: boolean;
}

export interface Call {
  readonly from: number;
  readonly to: number;
  readonly only?: 'tiled' | 'others';
}

/** The results of the task's calls, and the tiled kernels that they ran. */
export function solve(
  { memory, theta, block, previous: given }: Given,
  { biased = false, ...asked }: Asked,
  calls: readonly Call[] = [{ from: 0, to: block.rows }],
  cancelled = () => false,
) {
  const { rows } = block;
  const [previous, factors] = [
    given ?? memory.matrix(rows, theta.columns, 3),
    memory.matrix(rows, theta.columns, 4),
  ];
  const before = memory.values(previous).slice();
  const bias = new Float32Array(rows).fill(biased ? Number.NaN : 0);
  const partitions = { block, ...(biased ? { fixedBias: columnOf(gamma), bias: columnOf(bias) } : {}) };
  const ran = { rows: 0, groups: 0, passes: 0 };
  const { kernels } = memory;
  const counted = {
    ...kernels,
    startPasses: (...args: Parameters<typeof kernels.startPasses>) => (
      ran.rows++,
      kernels.startPasses(...args)
    ),
    passTiles: (...args: Parameters<typeof kernels.passTiles>) => {
      ran.passes++;
      const [, , pass, from] = args;
      if (pass === 0 && from === 0) ran.groups++;
      kernels.passTiles(...args);
    },
  };
  let [badRow, objective, solved] = [-1, 0, 0];
  for (const call of calls) {
    const params = { lambda, tiled, cgBelow: 2 ** 31 - 1, rank: theta.columns, mean, ...asked, ...call };
    const outcome = update({
      ...memory.scope(params, partitions, { fixed: theta, previous, factors }, cancelled),
      kernels: counted,
    });
    const bad = outcome.values!.badRow as number;
    if (bad >= 0) badRow = badRow < 0 ? bad : Math.min(badRow, bad);
    const { objective: sum, objectives = [sum] } = outcome.values!;
    objective += (objectives as number[]).reduce((all, one) => all + one, 0);
    solved += outcome.rows!;
  }
  expect(memory.values(previous)).toEqual(before);
  const { stride } = factors;
  const row = (values: Float32Array, at: number) => values.slice(at * stride, (at + 1) * stride);
  return {
    badRow,
    objective,
    solved,
    bias,
    ran,
    factors: memory.values(factors).slice(),
    x: (at: number) => row(memory.values(factors), at),
    start: (at: number) => Float64Array.from(row(before, at).subarray(0, theta.columns)),
  };
}

/** The largest difference of a row of 1,000 ratings from its twin was 1e-5. */
export const ROUNDING = 5e-5;
