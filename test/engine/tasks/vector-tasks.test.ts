/**
 * The tasks of ALS that exchanges vectors, on every kind of device: steps with sums over vertical parts give
 * the solutions of `update` on the same device.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CompressedRows, verticalParts } from '../../../cpu/reference/vertical-parts.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { Device } from '../../../engine/run/device.ts';
import type { KernelName, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { gradientColumns, gradientLayout } from '../../../operators/tasks/vector-tasks.ts';
import { ratingBlock, relativeDistance } from '../../cpu/scope.ts';
import { deviceKinds } from '../../support/devices/device-kinds.ts';
import { DeviceParts, numbers, ref, slice } from '../../support/devices/device-parts.ts';

const lengths = [0, 1, 2, 3, 4, 5, 300, 0, 900, 9, 2500];
const [ROWS, COLUMNS] = [lengths.length, 120];
const whole = { from: 0, to: ROWS };
const weights = { alpha: 3, base: 1 };

const block = ratingBlock(lengths, COLUMNS, 2);
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

  const chosen = (rank: number, problem: Partial<UpdateProblem>): Promise<JsonObject> =>
    parts.chosen({
      rank,
      solver: 'cg',
      cgSteps: 3,
      precision: 'f32',
      biases: false,
      rows: ROWS,
      columns: COLUMNS,
      ratings: 4000,
      iterations: 10,
      longest: 2500,
      largestRating: 5,
      ...problem,
    });

  /** Adds a task's sums over vertical parts of all ratings. */
  async function sumOfParts(
    p: number,
    columns: number,
    kernel: KernelName,
    params: JsonObject,
    theta: Partition,
    more: (first: number, last: number, part: number) => Readonly<Record<string, PartitionRef>>,
    name: 'gradients' | 'products',
  ): Promise<PartitionRef> {
    const sum = parts.allocate(name, ROWS, columns);
    for (const [part, { first, last, ...own }] of verticalParts(
      block.columns as unknown as CompressedRows,
      COLUMNS,
      p,
    ).entries()) {
      const partial = parts.allocate(`${name} of a part`, ROWS, columns, {}, part);
      const { metrics } = await parts.run(
        kernel,
        { ...whole, ...params },
        {
          block: parts.put('block', { ...block, columns: own }, 1 + part),
          fixed: parts.put('fixed', slice(theta, first, last), 1 + part),
          ...more(first, last, part),
        },
        { [name]: partial },
      );
      expect(metrics.rows).toBe(ROWS);
      await parts.run('add-rows', whole, { addend: partial }, { sum });
      parts.release([partial, ref('block', 1 + part), ref('fixed', 1 + part)]);
    }
    return sum;
  }

  const cases = (['explicit', 'biases', 'implicit'] as const).flatMap((kind) => [
    { kind, p: 1, rank: 12, cgSteps: 3 },
    { kind, p: 3, rank: 40, cgSteps: 3 },
    { kind, p: 2, rank: 268, cgSteps: 2 },
  ]);
  it.skipIf(skip).each(cases)(
    'takes steps with sums over parts as on the whole: $kind, $p parts, rank $rank',
    async ({ kind, p, rank, cgSteps }) => {
      const [biases, implicit] = [kind === 'biases', kind === 'implicit'];
      const [theta, previous] = [numbers('factors', COLUMNS, rank, 1), numbers('factors', ROWS, rank, 3)];
      const choice = await chosen(rank, { biases, implicit, cgSteps });
      const regularization = { rank, lambda: 0.05, offset: 0.5, exponent: 0.9, damping: 2 };
      const start = parts.put('previous', previous);
      const more: Record<string, PartitionRef> = {};
      if (implicit) {
        Object.assign(more, {
          gram: parts.allocate('gram', Math.ceil(rank / 16) * 16, rank),
          shifts: parts.put('shifts', shifts),
        });
        await parts.run(
          'gram',
          { from: 0, to: rank, rank, weight: 0.1 },
          { factors: parts.put('all', theta) },
          { gram: more.gram },
        );
      }
      const [expected, found, direction] = ['expected', 'found', 'direction'].map((name) =>
        parts.allocate(name, ROWS, rank),
      );
      const [expectedBias, foundBias] = biases
        ? ['expectedBias', 'foundBias'].map((name) =>
            parts.allocate(name, ROWS, 1, { layout: 'bias', stride: 1 }),
          )
        : [];
      const bias = (of?: PartitionRef): Readonly<Record<string, PartitionRef>> => (of ? { bias: of } : {});
      const solve = {
        ...whole,
        ...regularization,
        cgBelow: 2 ** 31 - 1,
        cgSteps,
        ...choice,
      };
      await parts.run(
        implicit ? 'update-implicit' : 'update',
        { ...solve, ...(implicit ? weights : { mean: 2.5 }) },
        {
          block: parts.put('block', block),
          fixed: parts.put('fixed', theta),
          previous: start,
          ...more,
          ...(biases ? { fixedBias: parts.put('fixedBias', fixedBias) } : {}),
        },
        { factors: expected, ...bias(expectedBias) },
      );

      const weighed = implicit ? { implicit: weights } : {};
      const ofBias = (first: number, last: number, part: number): Readonly<Record<string, PartitionRef>> =>
        biases ? { fixedBias: parts.put('fixedBias', slice(fixedBias, first, last), 1 + part) } : {};
      const gradients = await sumOfParts(
        p,
        gradientColumns(rank, biases),
        'add-residuals',
        { rank, mean: 2.5, ...weighed },
        theta,
        (...part) => ({ previous: start, ...ofBias(...part) }),
        'gradients',
      );
      const sums = await parts.fetched(gradients);
      const { n } = gradientLayout(rank);
      expect(lengths.map((_, row) => sums[row * gradientColumns(rank, biases) + n])).toEqual(lengths);
      await parts.run(
        'begin-gradients',
        { ...whole, ...regularization },
        { previous: start, ...more },
        { gradients, factors: found, direction },
      );
      for (let step = 0; step < cgSteps; step++) {
        const products = await sumOfParts(
          p,
          rank,
          'add-products',
          { rank, ...weighed },
          theta,
          () => ({ direction }),
          'products',
        );
        await parts.run(
          'step-gradients',
          { ...whole, ...regularization },
          { products, ...more },
          { gradients, factors: found, direction },
        );
        parts.release([products]);
      }
      const { values } = await parts.run(
        'end-gradients',
        { ...whole, ...regularization },
        { gradients, direction },
        { factors: found, ...bias(foundBias) },
      );
      expect(values).toEqual({ badRow: -1 });
      const [x, twin] = [await parts.fetched(found), await parts.fetched(expected)];
      for (let row = 0; row < ROWS; row++)
        expect(
          relativeDistance(
            x.subarray(row * rank, (row + 1) * rank),
            twin.subarray(row * rank, (row + 1) * rank),
          ),
          `row of ${lengths[row]}`,
        ).toBeLessThan(4e-4);
      if (foundBias && expectedBias)
        expect(
          relativeDistance(await parts.fetched(foundBias), await parts.fetched(expectedBias)),
        ).toBeLessThan(4e-4);
      parts.release();
    },
  );

  it.skipIf(skip)('names the first row that is not finite', async () => {
    const rank = 12;
    const [theta, previous] = [numbers('factors', COLUMNS, rank, 1), numbers('factors', ROWS, rank, 3)];
    const values = sharedArray(Float32Array, block.columns.values.length);
    values.set(block.columns.values as Float32Array);
    for (const row of [8, 5]) values[block.columns.offsets[row] as number] = Number.NaN;
    const start = parts.put('previous', previous);
    const gradients = parts.allocate('gradients', ROWS, gradientColumns(rank, false));
    const [factors, direction, products] = ['factors', 'direction', 'products'].map((name) =>
      parts.allocate(name, ROWS, rank),
    );
    const params = { ...whole, rank, lambda: 0.05 };
    const given = {
      block: parts.put('block', { ...block, columns: { ...block.columns, values } }),
      fixed: parts.put('fixed', theta),
    };
    await parts.run('add-residuals', params, { ...given, previous: start }, { gradients });
    await parts.run('begin-gradients', params, { previous: start }, { gradients, factors, direction });
    await parts.run('add-products', params, { ...given, direction }, { products });
    await parts.run('step-gradients', params, { products }, { gradients, factors, direction });
    expect((await parts.run('end-gradients', params, { gradients, direction }, { factors })).values).toEqual({
      badRow: 5,
    });
    parts.release();
  });
});
