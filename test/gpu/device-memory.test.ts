import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import type { Task } from '../../engine/task.ts';
import type { GpuDevice } from '../../gpu/device.ts';
import { openGpuDevice } from '../../gpu/open-gpu-device.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';

const ref = (name: string, version = 0) => ({ name, partition: 0, version });

function factors(rows: number, columns: number): Partition {
  const values = sharedArray(Float32Array, rows * columns);
  for (let i = 0; i < values.length; i++) values[i] = Math.sin(i);
  return { layout: 'factors', rows, columns: { values } };
}

const block: Partition = {
  layout: 'rating-block',
  rows: 2,
  columns: {
    offsets: Int32Array.of(0, 2, 3),
    indices: Uint32Array.of(0, 2, 1),
    values: Float32Array.of(1, 2, 3),
  },
};

function norm(name: string, version = 0): Task {
  return {
    kernel: 'weighted-norm',
    inputs: { block: ref('block'), factors: ref(name, version) },
    outputs: {},
    params: { from: 0, to: 2, rank: 5 },
  };
}

describe.skipIf(noGpu)('the memory of a GPU device', () => {
  let device: GpuDevice;

  beforeAll(async () => {
    device = await openGpuDevice({ robust: true });
    device.put(ref('block'), block);
    // The tests count the bytes of their own partitions.
    await device.run({ kernel: 'upload', inputs: { data: ref('block') }, outputs: {}, params: {} });
  });
  afterAll(() => device?.close());

  it('keeps a matrix that was sent ahead, when the same memory is put again', async () => {
    const start = factors(2, 5);
    const bytes = 4 * 2 * 16;
    const upload = {
      kernel: 'upload',
      inputs: { data: ref('ahead') },
      outputs: {},
      params: {},
    } satisfies Task;
    device.put(ref('ahead'), start);
    expect((await device.run(upload)).metrics.bytesUp).toBe(bytes);
    device.put(ref('ahead'), start);
    const { metrics, values } = await device.run(norm('ahead'));
    expect(metrics.bytesUp).toBe(0);
    // Memory at another address is uploaded, though it has the same values.
    device.put(ref('ahead'), factors(2, 5));
    const again = await device.run(norm('ahead'));
    expect(again.metrics.bytesUp).toBe(bytes);
    expect(again.values).toEqual(values);
    device.release(ref('ahead'));
    // Another partition may have the name later.
    device.put(ref('ahead'), start);
    expect((await device.run(norm('ahead'))).metrics.bytesUp).toBe(bytes);
    device.release(ref('ahead'));
  });

  it.each(['there', 'left'])(
    'sends memory again that is given in another shape, when its host form is %s',
    async (form) => {
      const start = factors(2, 8);
      const shape = { from: 0, to: 2, rank: 4 };
      device.put(ref('shaped'), start);
      await device.run(
        form === 'left'
          ? { kernel: 'upload', inputs: { data: ref('shaped') }, outputs: {}, params: {} }
          : norm('shaped'),
      );
      // The first two of four rows.
      device.put(ref('shaped'), { ...start, rows: 4 });
      const values = start.columns.values as Float32Array;
      const expected = [2, 1].reduce(
        (sum, ratings, row) =>
          sum + ratings * values.subarray(4 * row, 4 * row + 4).reduce((all, value) => all + value ** 2, 0),
        0,
      );
      expect((await device.run({ ...norm('shaped'), params: shape })).values.sum).toBeCloseTo(expected, 5);
      expect((await device.fetch(ref('shaped'))).rows).toBe(4);
      device.release(ref('shaped'));
    },
  );

  it('takes the values of a transposed block from the block that it was made of', async () => {
    // The given values are not used.
    const transposed: Partition = {
      layout: 'rating-block',
      rows: 3,
      columns: {
        offsets: Int32Array.of(0, 1, 2, 3),
        indices: Uint32Array.of(0, 1, 0),
        values: Float32Array.of(99, 99, 99),
      },
    };
    device.put(ref('of'), block);
    await device.run({ kernel: 'upload', inputs: { data: ref('of') }, outputs: {}, params: {} });
    device.put(ref('transposed'), transposed);
    const { metrics } = await device.run({
      kernel: 'upload',
      inputs: { data: ref('transposed'), transposeOf: ref('of') },
      outputs: {},
      params: {},
    });
    expect(metrics.bytesUp).toBe(4 * (4 + 3));
    device.put(ref('zeros of rows'), {
      layout: 'factors',
      rows: 3,
      columns: { values: sharedArray(Float32Array, 15) },
    });
    device.put(ref('zeros of columns'), {
      layout: 'factors',
      rows: 2,
      columns: { values: sharedArray(Float32Array, 10) },
    });
    const task: Task = {
      kernel: 'squared-error',
      inputs: {
        block: ref('transposed'),
        rowFactors: ref('zeros of rows'),
        columnFactors: ref('zeros of columns'),
      },
      outputs: {},
      params: { from: 0, to: 3, rank: 5 },
    };
    expect((await device.run(task)).values).toEqual({ squared: 1 + 4 + 9, absolute: 1 + 2 + 3, count: 3 });
    // Its second row alone.
    expect((await device.run({ ...task, params: { ...task.params, from: 1, to: 2 } })).values).toEqual({
      squared: 9,
      absolute: 3,
      count: 1,
    });
    // A block with another number of ratings takes no values from it.
    device.put(ref('of'), {
      ...block,
      rows: 1,
      columns: { offsets: Int32Array.of(0, 1), indices: Uint32Array.of(0), values: Float32Array.of(7) },
    });
    device.put(ref('other'), transposed);
    await device.run({
      kernel: 'upload',
      inputs: { data: ref('other'), transposeOf: ref('of') },
      outputs: {},
      params: {},
    });
    expect(
      (await device.run({ ...task, inputs: { ...task.inputs, block: ref('other') } })).values.absolute,
    ).toBe(3 * 99);
    for (const name of ['of', 'transposed', 'other', 'zeros of rows', 'zeros of columns'])
      device.release(ref(name));
  });

  it('sends a matrix again that a task has written', async () => {
    const [start, other] = [factors(2, 5), factors(2, 5)];
    (other.columns.values as Float32Array).fill(2);
    device.put(ref('written'), start);
    await device.run({ kernel: 'upload', inputs: { data: ref('written') }, outputs: {}, params: {} });
    const before = (await device.run(norm('written'))).values.sum;
    device.put(ref('other'), other);
    await device.run({
      kernel: 'copy-rows',
      inputs: { source: ref('other') },
      outputs: { target: ref('written') },
      params: { from: 0, to: 2 },
    });
    device.put(ref('written'), start);
    expect((await device.run(norm('written'))).values.sum).toBe(before);
    for (const name of ['written', 'other']) device.release(ref(name));
  });

  it('gives a partition that was put again under the same name', async () => {
    const [small, large] = [factors(2, 5), factors(2, 5)];
    (large.columns.values as Float32Array).fill(1);
    device.put(ref('twice'), small);
    const before = (await device.run(norm('twice'))).values.sum as number;
    device.put(ref('twice'), large);
    expect((await device.run(norm('twice'))).values.sum).toBeCloseTo(2 * 5 + 5, 5);
    expect(before).not.toBeCloseTo(15, 1);
    device.release(ref('twice'));
  });

  it('zeroes what it allocates, the memory of a released matrix too', async () => {
    for (let version = 0; version < 3; version++) {
      device.put(ref('full', version), factors(64, 16));
      await device.run({ ...norm('full', version), params: { from: 0, to: 2, rank: 16 } });
      device.release(ref('full', version));
      device.allocate(ref('empty', version), { rows: 64, columns: 16, stride: 16 });
      expect((await device.fetch(ref('empty', version))).columns.values).toEqual(new Float32Array(1024));
      device.release(ref('empty', version));
    }
    await device.trim();
  });
});
