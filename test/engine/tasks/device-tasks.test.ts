/**
 * The tasks that every kind of device has: each against its float64 twin, and with the layouts of
 * operators/tasks/tasks.ts.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { biasSums, errors, predictPair, weightedNorm, type Block } from '../../../cpu/reference/errors.ts';
import { stepInOrder } from '../../../cpu/reference/sgd.ts';
import { solveNonnegative } from '../../../cpu/reference/nonnegative.ts';
import { normalEquations } from '../../../cpu/reference/normal-equations.ts';
import { rankListed } from '../../../cpu/reference/rank-listed.ts';
import { topN } from '../../../cpu/reference/top-n.ts';
import { updateRow } from '../../../cpu/reference/update.ts';
import type { Device } from '../../../engine/run/device.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { Task } from '../../../engine/task.ts';
import { ratingBlock, relativeDistance, residual, rowOf } from '../../cpu/scope.ts';
import { deviceKinds } from '../../support/devices/device-kinds.ts';
import { valuesOfTask } from '../../support/devices/values-of-task.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';

const lengths = [0, 1, 2, 3, 4, 5, 300, 0, 900, 9];
const COLUMNS = 120;
const ref = (name: string): PartitionRef => ({ name, partition: 0, version: 0 });

function matrix(rows: number, rank: number, seed: number): Partition {
  const values = sharedArray(Float32Array, rows * rank);
  const random = new CounterRandom(seed);
  for (let i = 0; i < values.length; i++) values[i] = (2 * random.uniform(i) - 1) / Math.sqrt(rank);
  return { layout: 'factors', rows, columns: { values } };
}

function vector(layout: string, length: number, seed: number): Partition {
  const values = sharedArray(Float32Array, length);
  const random = new CounterRandom(seed);
  for (let i = 0; i < length; i++) values[i] = random.uniform(i) - 0.5;
  return { layout, rows: length, columns: { values } };
}

describe.each(deviceKinds)('a $kind device', ({ open, skip }) => {
  let device: Device;
  beforeAll(async () => {
    if (skip === undefined) device = await open();
  });
  afterAll(() => device?.close());

  /** Runs a task on partitions that are there for it alone; `given` are put, `read` are fetched. */
  async function run<Name extends string>(
    kernel: string,
    params: Task['params'],
    given: Readonly<Record<string, Partition>>,
    read: readonly Name[] = [],
  ) {
    const inputs = Object.fromEntries(Object.keys(given).map((name) => [name, ref(name)]));
    const outputs = Object.fromEntries(read.map((name) => [name, ref(name)]));
    for (const [name, partition] of Object.entries(given)) device.put(ref(name), partition);
    const { values, metrics } = await device.run({ kernel, params, inputs, outputs });
    const fetched = Object.fromEntries(
      await Promise.all(read.map(async (name) => [name, (await device.fetch(ref(name))).columns])),
    );
    for (const name of [...Object.keys(given), ...read]) device.release(ref(name));
    return { values, metrics, fetched: fetched as Record<Name, Partition['columns']> };
  }

  /** The parameters of `update` that the device itself chooses. */
  async function chosen(
    rank: number,
    cgBelow: number,
    rows: number,
    nonnegative = false,
  ): Promise<Task['params']> {
    const solver = cgBelow > 0 ? 'cg' : 'cholesky';
    if (!device.info.choosesKernels) return {};
    const problem: UpdateProblem = {
      rank,
      nonnegative,
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
    const choice = await valuesOfTask(device, {
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
    device.allocate(ref('factors'), {
      rows: lengths.length,
      columns: rank,
      stride: Math.ceil(rank / device.info.strideStep) * device.info.strideStep,
    });
    const params = {
      from: 0,
      to: lengths.length,
      rank,
      lambda,
      cgBelow,
      cgSteps: 3,
      mean: 0,
      nonnegative: false,
      ...(await chosen(rank, cgBelow, lengths.length)),
    };
    const { values, metrics, fetched } = await run('update', params, { block, fixed: theta, previous }, [
      'factors',
    ]);
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
    device.allocate(ref('factors'), {
      rows: lengths.length,
      columns: rank,
      stride: Math.ceil(rank / device.info.strideStep) * device.info.strideStep,
    });
    const params = {
      from: 0,
      to: lengths.length,
      rank,
      lambda,
      cgBelow: 0,
      cgSteps: 3,
      mean: 0,
      nonnegative: true,
      ...(await chosen(rank, 0, lengths.length, true)),
    };
    const { values, fetched } = await run('update', params, { block, fixed: theta, previous }, ['factors']);
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
    device.allocate(ref('factors'), { rows: lengths.length, columns: 10, stride: 16 });
    const params = {
      from: 0,
      to: lengths.length,
      rank: 10,
      lambda: 0.05,
      cgBelow: 0,
      cgSteps: 3,
      mean: 0,
      nonnegative: false,
      ...(await chosen(10, 0, lengths.length)),
    };
    const { values } = await run(
      'update',
      params,
      { block, fixed: matrix(COLUMNS, 10, 1), previous: matrix(lengths.length, 10, 3) },
      ['factors'],
    );
    expect(values.badRow).toBe(4);
  });

  it.skipIf(skip).each([1, 8, 10, 40])('sums errors and norms over rows, rank %i', async (rank) => {
    const [x, theta] = [matrix(lengths.length, rank, 1), matrix(COLUMNS, rank, 2)];
    const block = ratingBlock(lengths, COLUMNS, 3);
    const arrays = block.columns as unknown as Block;
    const [rowValues, columnValues] = [
      x.columns.values as Float32Array,
      theta.columns.values as Float32Array,
    ];
    for (const [from, to] of [
      [0, lengths.length],
      [3, 7],
      [8, 9],
      [0, 0],
    ]) {
      const { values } = await run(
        'squared-error',
        { from, to, rank },
        { block, rowFactors: x, columnFactors: theta },
      );
      const twin = errors(rowValues, columnValues, rank, arrays, from, to);
      expect(values.count).toBe(twin.count);
      expect(Math.abs((values.squared as number) - twin.squared)).toBeLessThanOrEqual(1e-5 * twin.squared);
      expect(Math.abs((values.absolute as number) - twin.absolute)).toBeLessThanOrEqual(1e-5 * twin.absolute);
      for (const exponent of [1, 0.5]) {
        const norms = (await run('weighted-norm', { from, to, rank, exponent }, { block, factors: x }))
          .values;
        const expected = weightedNorm(rowValues, rank, arrays.offsets, from, to, exponent);
        for (const name of ['sum', 'plain'] as const)
          expect(Math.abs((norms[name] as number) - expected[name])).toBeLessThanOrEqual(
            1e-5 * expected[name],
          );
      }
    }
  });

  it.skipIf(skip)('sums biases beside norms, and along the totals of the rows', async () => {
    const [x, bias, totals] = [
      matrix(lengths.length, 3, 1),
      vector('bias', lengths.length, 5),
      vector('row-totals', lengths.length, 6),
    ];
    const block = ratingBlock(lengths, COLUMNS, 3);
    const { offsets } = block.columns as unknown as Block;
    const [biasValues, totalValues] = [bias, totals].map(({ columns }) => columns.values as Float32Array);
    for (const [from, to] of [
      [0, lengths.length],
      [3, 7],
      [8, 9],
      [0, 1],
      [0, 0],
    ]) {
      const twin = biasSums(biasValues, totalValues, offsets, from, to);
      const norms = weightedNorm(x.columns.values as Float32Array, 3, offsets, from, to);
      for (const along of [true, false]) {
        const { values } = await run(
          'weighted-norm',
          { from, to, rank: 3 },
          { block, factors: x, bias, ...(along ? { totals } : {}) },
        );
        for (const [name, expected] of Object.entries({
          ...norms,
          ...twin,
          ...(along ? {} : { biasAlong: 0 }),
        }))
          expect(Math.abs((values[name] as number) - expected)).toBeLessThanOrEqual(
            1e-5 * Math.abs(expected),
          );
      }
    }
  });

  it.skipIf(skip)('sums errors with biases,  of rows and columns', async () => {
    const rank = 9;
    const [x, theta] = [matrix(lengths.length, rank, 1), matrix(COLUMNS, rank, 2)];
    const [rowBias, columnBias] = [vector('bias', lengths.length, 5), vector('bias', COLUMNS, 6)];
    const block = ratingBlock(lengths, COLUMNS, 3);
    const { offsets, indices, values: ratings } = block.columns as unknown as Block;
    let squared = 0;
    for (let row = 0; row < lengths.length; row++) {
      for (let k = offsets[row]; k < offsets[row + 1]; k++) {
        const product = predictPair(
          x.columns.values as Float32Array,
          row,
          theta.columns.values as Float32Array,
          indices[k],
          rank,
        );
        squared +=
          (ratings[k] -
            (0.25 +
              (rowBias.columns.values[row] as number) +
              (columnBias.columns.values[indices[k]] as number) +
              product)) **
          2;
      }
    }
    const { values } = await run(
      'squared-error',
      { from: 0, to: lengths.length, rank, mean: 0.25 },
      { block, rowFactors: x, columnFactors: theta, rowBias, columnBias },
    );
    expect(Math.abs((values.squared as number) - squared)).toBeLessThanOrEqual(1e-5 * squared);
  });

  it.skipIf(skip).each([1, 10, 40])('predicts pairs, rank %i', async (rank) => {
    const [x, theta] = [matrix(40, rank, 1), matrix(30, rank, 2)];
    for (const count of [0, 1, 1000]) {
      const rows = Uint32Array.from({ length: count }, (_, k) => (k * 7) % 40);
      const columns = Uint32Array.from({ length: count }, (_, k) => (k * 11) % 30);
      const pairs = { layout: 'pairs', rows: count, columns: { rows, columns } };
      const { fetched, metrics } = await run(
        'predict',
        { rank },
        { pairs, rowFactors: x, columnFactors: theta },
        ['predictions'],
      );
      const { values } = fetched.predictions;
      expect([metrics.rows, values.length]).toEqual([count, count]);
      for (let k = 0; k < count; k += 37) {
        const twin = predictPair(
          x.columns.values as Float32Array,
          rows[k],
          theta.columns.values as Float32Array,
          columns[k],
          rank,
        );
        expect(Math.abs((values[k] as number) - twin)).toBeLessThan(1e-6);
      }
    }
  });

  it.skipIf(skip).each([
    [5, false],
    [20, true],
  ])('steps a list of ratings, rank %i, AdaGrad %s', async (rank, adaptive) => {
    const [rows, columns, count] = [30, 20, 90];
    const [p, q] = [matrix(rows, rank, 11), matrix(columns, rank, 12)];
    const list = {
      rows: sharedArray(Uint32Array, count),
      columns: sharedArray(Uint32Array, count),
      values: sharedArray(Float32Array, count),
    };
    for (let k = 0; k < count; k++)
      [list.rows[k], list.columns[k], list.values[k]] = [(7 * k) % rows, (11 * k) % columns, Math.sin(k)];
    const order = sharedArray(Uint32Array, 1);
    const [x, theta] = [p, q].map(({ columns: { values } }) => Float64Array.from(values as Float32Array));
    const grown = { rows: new Float64Array(rows), columns: new Float64Array(columns) };
    const steps = { rank, biases: false, rate: 0.05, rowLambda: 0.02, columnLambda: 0.03 };
    stepInOrder(x, theta, rank, list, steps, adaptive ? grown : undefined);
    // All ratings are one batch, which one worker takes.
    const given = {
      block: { layout: 'rating-list', rows: count, columns: list },
      order: { layout: 'batch-order', rows: 1, columns: { order } },
    };
    for (const [name, partition] of Object.entries({ rows: p, columns: q })) device.put(ref(name), partition);
    for (const [name, length] of [
      ['rowSums', rows],
      ['columnSums', columns],
    ] as const)
      device.allocate(ref(name), { rows: length, columns: 1, stride: 1 });
    const { fetched, metrics } = await run(
      'sgd-block',
      { ...steps, adaptive, from: 0, to: 1, batch: count },
      given,
      ['rows', 'columns', 'rowSums', 'columnSums'],
    );
    expect(metrics.rows).toBe(count);
    expect(relativeDistance(fetched.rows.values as Float32Array, x)).toBeLessThan(1e-5);
    expect(relativeDistance(fetched.columns.values as Float32Array, theta)).toBeLessThan(1e-5);
    expect(relativeDistance(fetched.rowSums.values as Float32Array, grown.rows)).toBeLessThan(1e-4);
    expect(relativeDistance(fetched.columnSums.values as Float32Array, grown.columns)).toBeLessThan(1e-4);
  });

  it.skipIf(skip)('copies a matrix', async () => {
    const source = matrix(9, 5, 21);
    device.allocate(ref('target'), {
      rows: 9,
      columns: 5,
      stride: Math.ceil(5 / device.info.strideStep) * device.info.strideStep,
    });
    const { fetched } = await run('copy-rows', { from: 0, to: 9 }, { source }, ['target']);
    expect([...fetched.target.values]).toEqual([...source.columns.values]);
  });

  it.skipIf(skip).each([
    [1, 3, true, false],
    [10, 17, true, true],
    [130, 8, true, false],
    [5, 8, false, true],
  ])(
    'finds the %i best columns, rank %i, exclusions %s, ties by lower column, or by its number in an order: %s',
    async (n, rank, excluding, ordered) => {
      const rows = 12;
      const [x, theta] = [matrix(rows, rank, 7), matrix(COLUMNS, rank, 8)];
      // Small whole numbers: products are exact and ties are common.
      for (const { columns } of [x, theta])
        for (let i = 0; i < columns.values.length; i++)
          columns.values[i] = Math.round((columns.values[i] as number) * Math.sqrt(rank) * 2);
      const whole = ratingBlock(
        Array.from({ length: rows }, (_, row) => (row * 5) % 40),
        COLUMNS,
        9,
      );
      const { offsets, indices } = whole.columns as unknown as Block;
      // Exclusions need no values.
      const exclude = { ...whole, columns: { ...whole.columns, values: sharedArray(Float32Array, 0) } };
      const [from, to] = [2, rows];
      const numberOf = (column: number) => (ordered ? COLUMNS - 1 - column : column);
      const order: Partition = {
        layout: 'column-order',
        rows: COLUMNS,
        columns: { values: sharedArray(Uint32Array, COLUMNS).map((_, column) => numberOf(column)) },
      };
      const { fetched } = await run(
        'top-n',
        { from, to, rank, n },
        {
          rowFactors: x,
          columnFactors: theta,
          ...(excluding ? { exclude } : {}),
          ...(ordered ? { order } : {}),
        },
        ['top'],
      );
      const { items, scores } = fetched.top;
      for (let row = from; row < to; row++) {
        const all = Array.from({ length: COLUMNS }, (_, number) =>
          predictPair(
            x.columns.values as Float32Array,
            row,
            theta.columns.values as Float32Array,
            numberOf(number),
            rank,
          ),
        );
        const expected = topN(
          all,
          n,
          new Set(excluding ? indices.subarray(offsets[row], offsets[row + 1]) : []),
        );
        const missing = Array.from<number>({ length: n - expected.length });
        const at = (row - from) * n;
        expect([...items.subarray(at, at + n)]).toEqual([...expected, ...missing.fill(0xffff_ffff)]);
        expect([...scores.subarray(at, at + n)]).toEqual([
          ...expected.map((column) => all[column]),
          ...missing.fill(Number.NaN),
        ]);
      }
    },
  );

  it.skipIf(skip).each([
    [1, true],
    [17, true],
    [40, false],
  ])('ranks listed columns, rank %i, exclusions %s, ties by lower column', async (rank, excluding) => {
    const rows = 12;
    const [x, theta] = [matrix(rows, rank, 7), matrix(COLUMNS, rank, 8)];
    for (const { columns } of [x, theta])
      for (let i = 0; i < columns.values.length; i++)
        columns.values[i] = Math.round((columns.values[i] as number) * Math.sqrt(rank) * 2);
    // Columns of residue 1 by 3 are listed in rows from 1 on, those of residue 2 excluded.
    const block = (rest: number): Partition => {
      const lists = Array.from({ length: rows }, (_, row) =>
        Array.from({ length: 2 * row }, (_, k) => 3 * k + rest),
      );
      const offsets = sharedArray(Int32Array, rows + 1);
      lists.forEach((list, row) => (offsets[row + 1] = offsets[row] + list.length));
      const indices = sharedArray(Uint32Array, offsets[rows]);
      indices.set(lists.flat());
      return {
        layout: 'rating-block',
        rows,
        columns: { offsets, indices, values: sharedArray(Float32Array, 0) },
      };
    };
    const [listed, exclude] = [block(1), block(2)];
    const [from, to] = [2, rows];
    const { fetched } = await run(
      'rank-listed',
      { from, to, rank },
      { rowFactors: x, columnFactors: theta, listed, ...(excluding ? { exclude } : {}) },
      ['places'],
    );
    const rowOfBlock = ({ columns }: Partition, row: number) =>
      (columns.indices as Uint32Array).subarray(
        (columns.offsets as Int32Array)[row],
        (columns.offsets as Int32Array)[row + 1],
      );
    const expected = Array.from({ length: to - from }, (_, k) => {
      const scores = Array.from({ length: COLUMNS }, (_, column) =>
        predictPair(
          x.columns.values as Float32Array,
          from + k,
          theta.columns.values as Float32Array,
          column,
          rank,
        ),
      );
      return rankListed(
        scores,
        rowOfBlock(listed, from + k),
        new Set(excluding ? rowOfBlock(exclude, from + k) : []),
      );
    });
    expect([...fetched.places.values]).toEqual(expected.flat());
  });
});
