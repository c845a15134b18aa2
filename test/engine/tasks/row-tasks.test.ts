import { describe, expect, it } from 'vitest';
import { normalEquations } from '../../../cpu/reference/normal-equations.ts';
import { solveNonnegative } from '../../../cpu/reference/solvers.ts';
import { updateRow } from '../../../cpu/reference/update.ts';
import type { Task } from '../../../engine/task.ts';
import type { ExactSolver } from '../../../operators/tasks/task-types.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { ratingBlock, relativeDistance, residual, rowOf } from '../../cpu/scope.ts';
import { deviceKinds } from '../../support/devices/device-kinds.ts';
import { valuesOfTask } from '../../support/devices/values-of-task.ts';
import { COLUMNS, lengths, matrix, ref, taskRunner } from './task-runner.ts';

describe.each(deviceKinds)('rows on a $kind device', (kind) => {
  const runner = taskRunner(kind);
  const { skip } = kind;

  /** The parameters of `update` that the device itself chooses. */
  async function chosen(
    rank: number,
    cgBelow: number,
    rows: number,
    exact: ExactSolver = 'cholesky',
  ): Promise<Task['params']> {
    const solver = cgBelow > 0 ? 'cg' : exact;
    if (!runner.device.info.choosesKernels) return {};
    const problem: UpdateProblem = {
      rank,
      solver,
      cgSteps: 3,
      precision: 'f32',
      biases: false,
      rows,
      columns: COLUMNS,
      ratings: 2000,
      iterations: 10,
      longest: 900,
      largestRating: 5,
    };
    const choice = await valuesOfTask(runner.device, {
      kernel: 'choose-update',
      inputs: {},
      outputs: {},
      params: problem,
    });
    return { variant: choice.variant, precision: choice.precision, ratingScale: choice.ratingScale };
  }

  it.skipIf(skip).each([
    [1, 0],
    [10, 0],
    [40, 0],
    [10, 2 ** 31 - 1],
    [40, 2 ** 31 - 1],
  ])('solves rows of every kind, rank %i, CG below %i ratings', async (rank, cgBelow) => {
    const lambda = 0.05;
    const [theta, previous] = [matrix(COLUMNS, rank, 1), matrix(lengths.length, rank, 3)];
    const block = ratingBlock(lengths, COLUMNS, 2);
    runner.device.allocate(ref('factors'), {
      rows: lengths.length,
      columns: rank,
      stride: Math.ceil(rank / runner.device.info.strideStep) * runner.device.info.strideStep,
    });
    const params = {
      from: 0,
      to: lengths.length,
      rank,
      lambda,
      cgBelow,
      cgSteps: 3,
      mean: 0,
      ...(await chosen(rank, cgBelow, lengths.length)),
    };
    const { values, metrics, fetched } = await runner.run(
      'update',
      params,
      { block, fixed: theta, previous },
      ['factors'],
    );
    expect([values.badRow, metrics.rows]).toEqual([-1, lengths.length]);
    const solved = fetched.factors.values as Float32Array;
    lengths.forEach((length, row) => {
      const x = solved.subarray(row * rank, (row + 1) * rank);
      if (length === 0) return expect([...x]).toEqual(Array<number>(rank).fill(0));
      const fixed = theta.columns.values as Float32Array;
      if (cgBelow === 0) {
        const { matrix: a, bias } = normalEquations(fixed, rank, rank, rowOf(block, row), lambda);
        return expect(residual(a, x, bias)).toBeLessThan(1e-5);
      }
      const start = Float64Array.from(
        (previous.columns.values as Float32Array).subarray(row * rank, (row + 1) * rank),
      );
      return expect(
        relativeDistance(x, updateRow(fixed, rank, rank, rowOf(block, row), lambda, false, start, 3)!),
      ).toBeLessThan(1e-3);
    });
  });

  it.skipIf(skip).each([10, 40])('keeps x >= 0 where asked, at the minimum, rank %i', async (rank) => {
    const lambda = 0.05;
    const [theta, previous] = [matrix(COLUMNS, rank, 1), matrix(lengths.length, rank, 3)];
    const block = ratingBlock(lengths, COLUMNS, 2);
    runner.device.allocate(ref('factors'), {
      rows: lengths.length,
      columns: rank,
      stride: Math.ceil(rank / runner.device.info.strideStep) * runner.device.info.strideStep,
    });
    const params = {
      from: 0,
      to: lengths.length,
      rank,
      lambda,
      cgBelow: 0,
      cgSteps: 3,
      mean: 0,
      exact: 'nonnegative',
      ...(await chosen(rank, 0, lengths.length, 'nonnegative')),
    };
    const { values, fetched } = await runner.run('update', params, { block, fixed: theta, previous }, [
      'factors',
    ]);
    expect(values.badRow).toBe(-1);
    const solved = fetched.factors.values as Float32Array;
    lengths.forEach((length, row) => {
      const x = solved.subarray(row * rank, (row + 1) * rank);
      if (length === 0) return expect([...x]).toEqual(Array<number>(rank).fill(0));
      const equations = normalEquations(
        theta.columns.values as Float32Array,
        rank,
        rank,
        rowOf(block, row),
        lambda,
      );
      expect(Math.min(...x)).toBe(0);
      expect(relativeDistance(x, solveNonnegative(equations)!)).toBeLessThan(1e-3);
    });
  });

  it.skipIf(skip)('names the first row whose solution is not finite', async () => {
    const block = ratingBlock(lengths, COLUMNS, 2);
    const { offsets } = block.columns;
    for (const row of [8, 4]) block.columns.values[offsets[row] as number] = Number.NaN;
    runner.device.allocate(ref('factors'), { rows: lengths.length, columns: 10, stride: 16 });
    const params = {
      from: 0,
      to: lengths.length,
      rank: 10,
      lambda: 0.05,
      cgBelow: 0,
      cgSteps: 3,
      mean: 0,
      ...(await chosen(10, 0, lengths.length)),
    };
    const { values } = await runner.run(
      'update',
      params,
      { block, fixed: matrix(COLUMNS, 10, 1), previous: matrix(lengths.length, 10, 3) },
      ['factors'],
    );
    expect(values.badRow).toBe(4);
  });
});
