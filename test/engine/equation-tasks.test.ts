/** The tasks of data-parallel ALS on every kind of device: sums over vertical parts give the solutions of `update` on the same device. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CpuDevice } from '../../cpu/device.ts';
import { type CompressedRows, verticalParts } from '../../cpu/reference/vertical-parts.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type MatrixShape, type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import type { Device } from '../../engine/run/device.ts';
import { GpuDevice } from '../../gpu/device.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';
import type { KernelName, UpdateProblem } from '../../operators/tasks/tasks.ts';
import { ratingBlock, relativeDistance } from '../cpu/scope.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { valuesOfTask } from '../support/values-of-task.ts';

const lengths = [0, 1, 2, 3, 4, 5, 300, 0, 900, 9];
const [ROWS, COLUMNS, RANK] = [lengths.length, 120, 12];
const whole = { from: 0, to: ROWS };
const weights = { alpha: 3, base: 1 };
const ref = (name: string, partition = 0): PartitionRef => ({ name, partition, version: 0 });

function numbers(layout: string, rows: number, columns: number, seed: number): Partition {
  const values = sharedArray(Float32Array, rows * columns);
  const random = new CounterRandom(seed);
  for (let i = 0; i < values.length; i++) values[i] = (2 * random.uniform(i) - 0.7) / Math.sqrt(columns);
  return { layout, rows, columns: { values } };
}

/** The rows [first, last) of a matrix, or of a vector. */
function slice({ layout, rows, columns: { values } }: Partition, first: number, last: number): Partition {
  const width = values.length / rows;
  const own = sharedArray(Float32Array, (last - first) * width);
  own.set((values as Float32Array).subarray(first * width, last * width));
  return { layout, rows: last - first, columns: { values: own } };
}

const block = ratingBlock(lengths, COLUMNS, 2);
const [theta, previous] = [numbers('factors', COLUMNS, RANK, 1), numbers('factors', ROWS, RANK, 3)];
const fixedBias = numbers('bias', COLUMNS, 1, 5);
const shifts: Partition = { layout: 'row-shifts', rows: ROWS, columns: { values: sharedArray(Float32Array, ROWS).fill(0.7) } };

describe.each([
  { kind: 'CPU', open: async () => new CpuDevice({ threads: 2 }), skip: undefined },
  { kind: 'GPU', open: () => GpuDevice.open(), skip: noGpu },
])('a $kind device', ({ open, skip }) => {
  let device: Device;
  let held: PartitionRef[] = [];
  beforeAll(async () => {
    if (skip === undefined) device = await open();
  });
  afterAll(() => device?.close());

  function put(name: string, partition: Partition, part = 0): PartitionRef {
    device.put(ref(name, part), partition);
    held.push(ref(name, part));
    return ref(name, part);
  }
  function allocate(name: string, rows: number, columns: number, more: Partial<MatrixShape> = {}, part = 0): PartitionRef {
    device.allocate(ref(name, part), { rows, columns, stride: Math.ceil(columns / device.info.strideStep) * device.info.strideStep, ...more });
    held.push(ref(name, part));
    return ref(name, part);
  }
  const run = (kernel: KernelName, params: JsonObject, inputs: Readonly<Record<string, PartitionRef>>, outputs: Readonly<Record<string, PartitionRef>>) => device.run({ kernel, params, inputs, outputs });
  const fetched = async (of: PartitionRef) => (await device.fetch(of)).columns.values as Float32Array;
  function releaseAll() {
    for (const one of held) device.release(one);
    held = [];
  }

  async function chosen(problem: Partial<UpdateProblem>): Promise<JsonObject> {
    if (!device.info.choosesKernels) return {};
    const params: UpdateProblem = { rank: RANK, solver: 'cg', cgSteps: 3, precision: 'f32', biases: false, rows: ROWS, columns: COLUMNS, ratings: 2000, iterations: 10, longest: 900, largestRating: 5, ...problem };
    const { variant, precision, ratingScale } = await valuesOfTask(device, { kernel: 'choose-update', inputs: {}, outputs: {}, params });
    return { variant, precision, ratingScale };
  }

  const cases = (['explicit', 'biases', 'implicit'] as const).flatMap((kind) => (['cg', 'cholesky', 'nonnegative'] as const).flatMap((solver) => ({ kind, solver, p: kind === 'explicit' ? 5 : 2 })));
  it.skipIf(skip).each(cases)('solves rows from sums over parts as from the whole: $kind, $solver, $p parts', async ({ kind, solver, p }) => {
    const [biases, implicit, nonnegative] = [kind === 'biases', kind === 'implicit', solver === 'nonnegative'];
    const choice = await chosen({ biases, implicit, nonnegative, solver: solver === 'cg' ? 'cg' : 'cholesky' });
    const solve = { ...whole, rank: RANK, lambda: 0.05, offset: 0.5, cgBelow: solver === 'cg' ? 2 ** 31 - 1 : 0, cgSteps: 3, nonnegative, ...choice };
    const start = put('previous', previous);
    const more: Record<string, PartitionRef> = {};
    if (implicit) {
      Object.assign(more, { gram: allocate('gram', 16, RANK), shifts: put('shifts', shifts) });
      await run('gram', { from: 0, to: RANK, rank: RANK, weight: 0.1 }, { factors: put('all', theta) }, { gram: more.gram });
    }
    const [expected, found] = [allocate('expected', ROWS, RANK), allocate('found', ROWS, RANK)];
    const [expectedBias, foundBias] = biases ? [allocate('expectedBias', ROWS, 1, { layout: 'bias', stride: 1 }), allocate('foundBias', ROWS, 1, { layout: 'bias', stride: 1 })] : [];
    const bias = (of?: PartitionRef): Readonly<Record<string, PartitionRef>> => (of ? { bias: of } : {});
    const inputs = { block: put('block', block), fixed: put('fixed', theta), previous: start, ...more, ...(biases ? { fixedBias: put('fixedBias', fixedBias) } : {}) };
    const { values: ofUpdate } = await run(implicit ? 'update-implicit' : 'update', { ...solve, ...(implicit ? weights : { mean: 2.5 }) }, inputs, { factors: expected, ...bias(expectedBias) });

    const columns = equationColumns(RANK, biases);
    const sum = allocate('sum', ROWS, columns);
    for (const [part, { first, last, ...own }] of verticalParts(block.columns as unknown as CompressedRows, COLUMNS, p).entries()) {
      const equations = allocate('equations', ROWS, columns, {}, part);
      const given = { block: put('block', { ...block, columns: own }, 1 + part), fixed: put('fixed', slice(theta, first, last), 1 + part), ...(biases ? { fixedBias: put('fixedBias', slice(fixedBias, first, last), 1 + part) } : {}) };
      const { metrics } = await run('normal-equations', { ...whole, rank: RANK, mean: 2.5, ...(implicit ? { implicit: weights } : {}), ...choice }, given, { equations });
      expect(metrics.rows).toBe(ROWS);
      await run('add-rows', whole, { addend: equations }, { sum });
    }
    const { values } = await run('solve-equations', solve, { equations: sum, previous: start, ...more }, { factors: found, ...bias(foundBias) });
    const { objective, ...others } = values as { badRow: number; objective?: number };
    expect(others).toEqual({ badRow: -1 });
    expect(relativeDistance([objective ?? 1], [objective === undefined ? 1 : (ofUpdate as { objective: number }).objective])).toBeLessThan(1e-4);
    const [x, twin] = [await fetched(found), await fetched(expected)];
    for (let row = 0; row < ROWS; row++) expect(relativeDistance(x.subarray(row * RANK, (row + 1) * RANK), twin.subarray(row * RANK, (row + 1) * RANK)), `row of ${lengths[row]}`).toBeLessThan(2e-4);
    if (foundBias && expectedBias) expect(relativeDistance(await fetched(foundBias), await fetched(expectedBias))).toBeLessThan(2e-4);
    releaseAll();
  });

  it.skipIf(skip)('has equations and rows of a slice, and names the first bad row', async () => {
    const choice = await chosen({ solver: 'cholesky' });
    const solve = { rank: RANK, lambda: 0.05, cgBelow: 0, cgSteps: 0, ...choice };
    const { offsets, ...lists } = block.columns;
    const ratings = sharedArray(Float32Array, lists.values.length);
    ratings.set(lists.values as Float32Array);
    for (const row of [8, 5]) ratings[offsets[row] as number] = Number.NaN;
    const [slices, factors] = [allocate('slice', 6, equationColumns(RANK, false)), allocate('factors', ROWS, RANK)];
    const equations = (values: Float32Array, number: number) => run('normal-equations', { from: 3, to: 9, rowStart: 3, rank: RANK, ...choice }, { block: put('block', { ...block, columns: { ...block.columns, values } }, number), fixed: put('fixed', theta) }, { equations: slices });
    const solved = (from: number) => run('solve-equations', { ...solve, from, to: 9, rowStart: 3 }, { equations: slices, previous: put('previous', previous) }, { factors });
    await equations(lists.values as Float32Array, 1);
    expect((await solved(3)).values.badRow).toBe(-1);
    const own = await fetched(factors);
    const all = allocate('all', ROWS, RANK);
    await run('update', { ...solve, ...whole }, { block: put('block', block), fixed: ref('fixed'), previous: ref('previous') }, { factors: all });
    const twin = (await fetched(all)).slice(3 * RANK, 9 * RANK);
    expect(relativeDistance(own.subarray(3 * RANK, 9 * RANK), twin)).toBeLessThan(2e-4);
    expect([...own.subarray(0, 3 * RANK), ...own.subarray(9 * RANK)].every((value) => value === 0)).toBe(true);
    await equations(ratings, 2);
    expect([(await solved(3)).values.badRow, (await solved(6)).values.badRow]).toEqual([5, 8]);
    releaseAll();
  });

  it.skipIf(skip)('places rows of parts, and biases, among those of the whole', async () => {
    const parts = [slice(theta, 0, 50), slice(theta, 50, 51), slice(theta, 51, COLUMNS)];
    const [target, bias] = [allocate('target', COLUMNS, RANK), allocate('bias', COLUMNS, 1, { layout: 'bias', stride: 1 })];
    for (const [part, rowFrom] of [0, 50, 51].entries()) {
      const { metrics } = await run('place-rows', { rowFrom }, { rows: put('part', parts[part], part) }, { whole: target });
      expect(metrics.rows).toBe(parts[part].rows);
      await run('place-rows', { rowFrom }, { rows: put('biasPart', slice(fixedBias, rowFrom, rowFrom + parts[part].rows), part) }, { whole: bias });
    }
    expect(await fetched(target)).toEqual(theta.columns.values);
    expect(await fetched(bias)).toEqual(fixedBias.columns.values);
    await expect(run('place-rows', { rowFrom: 0 }, { rows: put('narrow', numbers('factors', 4, 2 * device.info.strideStep + 1, 1)) }, { whole: target })).rejects.toThrow('do not fit rows of 12');
    await expect(run('add-rows', { from: 0, to: 4 }, { addend: ref('part', 0) }, { sum: target })).rejects.toThrow('50 x 12 numbers cannot be added to 120 x 12');
    releaseAll();
  });
});
