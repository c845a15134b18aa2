/**
 * The tasks of data-parallel ALS on every kind of device: sums over vertical parts give the solutions of
 * `update` on the same device.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CompressedRows, verticalParts } from '../../../cpu/reference/vertical-parts.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { Device } from '../../../engine/run/device.ts';
import { equationColumns } from '../../../operators/tasks/equation-tasks.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { ratingBlock, relativeDistance } from '../../cpu/scope.ts';
import { deviceKinds } from '../../support/devices/device-kinds.ts';
import { DeviceParts, numbers, ref, slice } from '../../support/devices/device-parts.ts';

const lengths = [0, 1, 2, 3, 4, 5, 300, 0, 900, 9];
const [ROWS, COLUMNS, RANK] = [lengths.length, 120, 12];
const whole = { from: 0, to: ROWS };
const weights = { alpha: 3, base: 1 };

const block = ratingBlock(lengths, COLUMNS, 2);
const [theta, previous] = [numbers('factors', COLUMNS, RANK, 1), numbers('factors', ROWS, RANK, 3)];
const fixedBias = numbers('bias', COLUMNS, 1, 5);
const shifts: Partition = {
  layout: 'row-shifts',
  rows: ROWS,
  columns: { values: sharedArray(Float32Array, ROWS).fill(0.7) },
};

describe.each(deviceKinds)('a $kind device', ({ open, skip }) => {
  let device: Device;
  let parts: DeviceParts;
  beforeAll(async () => {
    if (skip === undefined)
      [device, parts] = await open().then((opened) => [opened, new DeviceParts(opened)] as const);
  });
  afterAll(() => device?.close());

  const chosen = (problem: Partial<UpdateProblem>): Promise<JsonObject> =>
    parts.chosen({
      rank: RANK,
      solver: 'cg',
      cgSteps: 3,
      precision: 'f32',
      biases: false,
      rows: ROWS,
      columns: COLUMNS,
      ratings: 2000,
      iterations: 10,
      longest: 900,
      largestRating: 5,
      ...problem,
    });

  const cases = (['explicit', 'biases', 'implicit'] as const).flatMap((kind) =>
    (['cg', 'cholesky', 'nonnegative'] as const).flatMap((solver) => ({
      kind,
      solver,
      p: kind === 'explicit' ? 5 : 2,
    })),
  );
  it.skipIf(skip).each(cases)(
    'solves rows from sums over parts as from the whole: $kind, $solver, $p parts',
    async ({ kind, solver, p }) => {
      const [biases, implicit] = [kind === 'biases', kind === 'implicit'];
      const choice = await chosen({ biases, implicit, solver });
      const solve = {
        ...whole,
        rank: RANK,
        lambda: 0.05,
        offset: 0.5,
        cgBelow: solver === 'cg' ? 2 ** 31 - 1 : 0,
        cgSteps: 3,
        ...(solver === 'cg' ? {} : { exact: solver }),
        ...choice,
      };
      const start = parts.put('previous', previous);
      const more: Record<string, PartitionRef> = {};
      if (implicit) {
        Object.assign(more, { gram: parts.allocate('gram', 16, RANK), shifts: parts.put('shifts', shifts) });
        await parts.run(
          'gram',
          { from: 0, to: RANK, rank: RANK, weight: 0.1 },
          { factors: parts.put('all', theta) },
          { gram: more.gram },
        );
      }
      const [expected, found] = [parts.allocate('expected', ROWS, RANK), parts.allocate('found', ROWS, RANK)];
      const [expectedBias, foundBias] = biases
        ? [
            parts.allocate('expectedBias', ROWS, 1, { layout: 'bias', stride: 1 }),
            parts.allocate('foundBias', ROWS, 1, { layout: 'bias', stride: 1 }),
          ]
        : [];
      const bias = (of?: PartitionRef): Readonly<Record<string, PartitionRef>> => (of ? { bias: of } : {});
      const inputs = {
        block: parts.put('block', block),
        fixed: parts.put('fixed', theta),
        previous: start,
        ...more,
        ...(biases ? { fixedBias: parts.put('fixedBias', fixedBias) } : {}),
      };
      const { values: ofRows } = await parts.run(
        implicit ? 'update-implicit' : 'update',
        { ...solve, ...(implicit ? weights : { mean: 2.5 }) },
        inputs,
        { factors: expected, ...bias(expectedBias) },
      );

      const columns = equationColumns(RANK, biases);
      const sum = parts.allocate('sum', ROWS, columns);
      for (const [part, { first, last, ...own }] of verticalParts(
        block.columns as unknown as CompressedRows,
        COLUMNS,
        p,
      ).entries()) {
        const equations = parts.allocate('equations', ROWS, columns, {}, part);
        const given = {
          block: parts.put('block', { ...block, columns: own }, 1 + part),
          fixed: parts.put('fixed', slice(theta, first, last), 1 + part),
          ...(biases ? { fixedBias: parts.put('fixedBias', slice(fixedBias, first, last), 1 + part) } : {}),
        };
        const { metrics } = await parts.run(
          'normal-equations',
          { ...whole, rank: RANK, mean: 2.5, ...(implicit ? { implicit: weights } : {}), ...choice },
          given,
          { equations },
        );
        expect(metrics.rows).toBe(ROWS);
        await parts.run('add-rows', whole, { addend: equations }, { sum });
      }
      const { values } = await parts.run(
        'solve-equations',
        solve,
        { equations: sum, previous: start, ...more },
        { factors: found, ...bias(foundBias) },
      );
      expect(values.badRow).toBe(-1);
      // A CPU always reports the objective of the rows, a GPU only if it is requested.
      if (ofRows.objective !== undefined)
        expect(Math.abs((values.objective as number) / (ofRows.objective as number) - 1)).toBeLessThan(1e-4);
      const [x, twin] = [await parts.fetched(found), await parts.fetched(expected)];
      for (let row = 0; row < ROWS; row++)
        expect(
          relativeDistance(
            x.subarray(row * RANK, (row + 1) * RANK),
            twin.subarray(row * RANK, (row + 1) * RANK),
          ),
          `row of ${lengths[row]}`,
        ).toBeLessThan(2e-4);
      if (foundBias && expectedBias)
        expect(
          relativeDistance(await parts.fetched(foundBias), await parts.fetched(expectedBias)),
        ).toBeLessThan(2e-4);
      parts.release();
    },
  );

  it.skipIf(skip)('has equations and rows of a slice, and names the first bad row', async () => {
    const choice = await chosen({ solver: 'cholesky' });
    const solve = { rank: RANK, lambda: 0.05, cgBelow: 0, cgSteps: 0, ...choice };
    const { offsets, ...lists } = block.columns;
    const ratings = sharedArray(Float32Array, lists.values.length);
    ratings.set(lists.values as Float32Array);
    for (const row of [8, 5]) ratings[offsets[row] as number] = Number.NaN;
    const [slices, factors] = [
      parts.allocate('slice', 6, equationColumns(RANK, false)),
      parts.allocate('factors', ROWS, RANK),
    ];
    const equations = (values: Float32Array, number: number) =>
      parts.run(
        'normal-equations',
        { from: 3, to: 9, rowStart: 3, rank: RANK, ...choice },
        {
          block: parts.put('block', { ...block, columns: { ...block.columns, values } }, number),
          fixed: parts.put('fixed', theta),
        },
        { equations: slices },
      );
    const solved = (from: number) =>
      parts.run(
        'solve-equations',
        { ...solve, from, to: 9, rowStart: 3 },
        { equations: slices, previous: parts.put('previous', previous) },
        { factors },
      );
    await equations(lists.values as Float32Array, 1);
    expect((await solved(3)).values.badRow).toBe(-1);
    const own = await parts.fetched(factors);
    const all = parts.allocate('all', ROWS, RANK);
    await parts.run(
      'update',
      { ...solve, ...whole },
      { block: parts.put('block', block), fixed: ref('fixed'), previous: ref('previous') },
      { factors: all },
    );
    const twin = (await parts.fetched(all)).slice(3 * RANK, 9 * RANK);
    expect(relativeDistance(own.subarray(3 * RANK, 9 * RANK), twin)).toBeLessThan(2e-4);
    expect([...own.subarray(0, 3 * RANK), ...own.subarray(9 * RANK)].every((value) => value === 0)).toBe(
      true,
    );
    await equations(ratings, 2);
    expect([(await solved(3)).values.badRow, (await solved(6)).values.badRow]).toEqual([5, 8]);
    parts.release();
  });

  it.skipIf(skip)('places rows of parts, and biases, among those of the whole', async () => {
    const pieces = [slice(theta, 0, 50), slice(theta, 50, 51), slice(theta, 51, COLUMNS)];
    const [target, bias] = [
      parts.allocate('target', COLUMNS, RANK),
      parts.allocate('bias', COLUMNS, 1, { layout: 'bias', stride: 1 }),
    ];
    for (const [part, rowFrom] of [0, 50, 51].entries()) {
      const { metrics } = await parts.run(
        'place-rows',
        { rowFrom },
        { rows: parts.put('part', pieces[part], part) },
        { whole: target },
      );
      expect(metrics.rows).toBe(pieces[part].rows);
      await parts.run(
        'place-rows',
        { rowFrom },
        { rows: parts.put('biasPart', slice(fixedBias, rowFrom, rowFrom + pieces[part].rows), part) },
        { whole: bias },
      );
    }
    expect(await parts.fetched(target)).toEqual(theta.columns.values);
    expect(await parts.fetched(bias)).toEqual(fixedBias.columns.values);
    await expect(
      parts.run(
        'place-rows',
        { rowFrom: 0 },
        { rows: parts.put('narrow', numbers('factors', 4, 2 * device.info.strideStep + 1, 1)) },
        { whole: target },
      ),
    ).rejects.toThrow('do not fit rows of 12');
    await expect(
      parts.run('add-rows', { from: 0, to: 4 }, { addend: ref('part', 0) }, { sum: target }),
    ).rejects.toThrow('50 x 12 numbers cannot be added to 120 x 12');
    parts.release();
  });
});
