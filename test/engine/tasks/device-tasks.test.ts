/**
 * The tasks that every kind of device has: each against its float64 twin, and with the layouts of
 * operators/tasks/tasks.ts.
 */
import { describe, expect, it } from 'vitest';
import { predictPair, type Block } from '../../../cpu/reference/errors.ts';
import { stepInOrder } from '../../../cpu/reference/sgd.ts';
import { rankListed, topN } from '../../../cpu/reference/top-n.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import { ratingBlock, relativeDistance } from '../../cpu/scope.ts';
import { deviceKinds } from '../../support/devices/device-kinds.ts';
import { floatClasses, LEAST_NORMAL } from '../../support/float-classes.ts';
import { COLUMNS, matrix, ref, taskRunner } from './task-runner.ts';

describe.each(deviceKinds)('a $kind device', (kind) => {
  const runner = taskRunner(kind);
  const { skip } = kind;

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
    for (const [name, partition] of Object.entries({ rows: p, columns: q }))
      runner.device.put(ref(name), partition);
    for (const [name, length] of [
      ['rowSums', rows],
      ['columnSums', columns],
    ] as const)
      runner.device.allocate(ref(name), { rows: length, columns: 1, stride: 1 });
    const { fetched, metrics } = await runner.run(
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
    runner.device.allocate(ref('target'), {
      rows: 9,
      columns: 5,
      stride: Math.ceil(5 / runner.device.info.strideStep) * runner.device.info.strideStep,
    });
    const { fetched } = await runner.run('copy-rows', { from: 0, to: 9 }, { source }, ['target']);
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
      const { fetched } = await runner.run(
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
    // Columns of residue 1 by 3 are listed in rows from 1 on, columns of residue 2 are excluded.
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
    const { fetched } = await runner.run(
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

  it.skipIf(skip)('ranks columns whose scores are of every class of float32', async () => {
    // A GPU may take subnormal numbers as 0.
    const scores = floatClasses.filter((score) => score === 0 || Math.abs(score) >= LEAST_NORMAL);
    const columns = scores.length;
    const whole = (values: Float32Array): Partition => ({
      layout: 'factors',
      rows: values.length,
      columns: { values },
    });
    const listed: Partition = {
      layout: 'rating-block',
      rows: 1,
      columns: {
        offsets: Int32Array.of(0, columns),
        indices: Uint32Array.from(scores, (_, column) => column),
        values: new Float32Array(0),
      },
    };
    const { fetched } = await runner.run(
      'rank-listed',
      { from: 0, to: 1, rank: 1 },
      { rowFactors: whole(Float32Array.of(1)), columnFactors: whole(scores), listed },
      ['places'],
    );
    const expected = rankListed([...scores], listed.columns.indices as Uint32Array, new Set());
    expect([...fetched.places.values]).toEqual([...expected]);
  });
});
