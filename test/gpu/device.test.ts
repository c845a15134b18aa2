/**
 * The contract of a GPU's device beyond the tasks that every device runs
 * (test/engine/tasks/tasks.test.ts).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CancelledError, CapacityError, DeviceLostError, UsageError } from '../../engine/errors.ts';
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

describe.skipIf(noGpu)('a GPU device', () => {
  let device: GpuDevice;

  beforeAll(async () => {
    device = await openGpuDevice({ robust: true });
    device.put(ref('block'), block);
  });
  afterAll(() => device?.close());

  it('describes itself', () => {
    expect(device.adapter.software).toBe(true);
    expect(device.info).toMatchObject({
      place: 'gpu:0',
      kind: 'gpu',
      parallelism: 1,
      inOrder: true,
      wholePasses: true,
      ownMemory: true,
      choosesKernels: true,
      strideStep: 16,
      capacityBytes: null,
      bindingBytes: 2 ** 30,
    });
    expect(device.info.description).toMatch(/swiftshader.*; (.*, )?computes on the processor$/);
  });

  it('counts the bytes that really go up and down, and sends nothing twice', async () => {
    device.put(ref('a'), factors(2, 5));
    const first = await device.run(norm('a'));
    // Row pointers, indices and values; two rows of 16.
    expect(first.metrics).toMatchObject({ rows: 2, bytesUp: 4 * (3 + 3 + 3 + 2 * 16) });
    const again = await device.run(norm('a'));
    expect(again.metrics.bytesUp).toBe(0);
    expect(again.values).toEqual(first.values);
    device.release(ref('a'));
  });

  it('takes tasks that need each other, and releases, before the first of them has ended', async () => {
    const copy = (from: number): Task => ({
      kernel: 'copy-rows',
      inputs: { source: ref('chain', from) },
      outputs: { target: ref('chain', from + 1) },
      params: { from: 0, to: 64 },
    });
    const start = factors(64, 16);
    device.put(ref('chain', 0), start);
    const running: Promise<unknown>[] = [];
    for (let version = 0; version < 12; version++) {
      device.allocate(ref('chain', version + 1), { rows: 64, columns: 16, stride: 16 });
      running.push(
        device.run(copy(version)),
        device.run({ ...norm('chain', version), params: { from: 0, to: 2, rank: 16 } }),
      );
      device.release(ref('chain', version));
    }
    const end = device.fetch(ref('chain', 12));
    expect((await end).columns.values).toEqual(start.columns.values);
    const sums = (await Promise.all(running)).flatMap(
      (result) => (result as { values: { sum?: number } }).values.sum ?? [],
    );
    expect(sums).toHaveLength(12);
    expect(new Set(sums).size).toBe(1);
    device.release(ref('chain', 12));
  });

  it('does not begin a task that is cancelled while it waits for its turn', async () => {
    const [large, controller] = [factors(2 ** 16, 16), new AbortController()];
    device.put(ref('waits'), factors(64, 16));
    device.allocate(ref('unwritten'), { rows: 64, columns: 16, stride: 16 });
    const before = [1, 2, 3].map((version) => {
      device.put(ref('large', version), large);
      return device.run({ ...norm('large', version), params: { from: 0, to: 2, rank: 16 } });
    });
    const copy = device.run(
      {
        kernel: 'copy-rows',
        inputs: { source: ref('waits') },
        outputs: { target: ref('unwritten') },
        params: { from: 0, to: 64 },
      },
      controller.signal,
    );
    controller.abort();
    await expect(copy).rejects.toBeInstanceOf(CancelledError);
    await Promise.all(before);
    expect((await device.fetch(ref('unwritten'))).columns.values).toEqual(new Float32Array(1024));
    for (const one of [ref('waits'), ref('unwritten'), ...[1, 2, 3].map((version) => ref('large', version))])
      device.release(one);
  });

  it('takes arrays that are not shared, such as parts of larger ones', async () => {
    const values = new Float32Array(1000).subarray(10, 20).fill(2);
    device.put(ref('part'), { layout: 'factors', rows: 2, columns: { values } });
    expect((await device.run(norm('part'))).values.sum).toBeCloseTo(2 * 20 + 20, 4);
    device.release(ref('part'));
  });

  it('refuses a buffer beyond what the adapter binds, with both figures and before anything is allocated', () => {
    const large = () => device.allocate(ref('large'), { rows: 2 ** 25, columns: 7, stride: 16 });
    expect(large).toThrow(CapacityError);
    expect(large).toThrow(
      /2\.0 GiB \(2147483648 bytes\) in one buffer.*at most 1\.0 GiB \(1073741824 bytes\)/,
    );
  });

  it('keeps within the memory it is given', async () => {
    const bounded = await openGpuDevice({ robust: true, memoryBytes: 3000 });
    try {
      const shape = { rows: 16, columns: 16, stride: 16 };
      bounded.allocate(ref('one'), shape);
      bounded.allocate(ref('two'), shape);
      expect(() => bounded.allocate(ref('three'), shape)).toThrow(/need 1024 bytes, have 952/);
      bounded.release(ref('one'));
      bounded.allocate(ref('three'), shape);
    } finally {
      await bounded.close();
    }
  });

  it('cancels', async () => {
    device.put(ref('a'), factors(2, 5));
    await expect(device.run(norm('a'), AbortSignal.abort())).rejects.toBeInstanceOf(CancelledError);
    const controller = new AbortController();
    const running = device.run(norm('a'), controller.signal);
    controller.abort();
    await expect(running).rejects.toBeInstanceOf(CancelledError);
    // The next task also sends the changes that the cancelled one carried.
    expect((await device.run(norm('a'))).metrics.rows).toBe(2);
    device.release(ref('a'));
  });
});

describe.skipIf(noGpu)('a GPU that is lost', () => {
  it.each([
    ['device', /the GPU swiftshader\S* was lost during .* \(destroyed: .*\)/],
    ['thread', /the thread of the GPU swiftshader\S* ended \(worker exited with code: 1\)/],
  ] as const)(
    'by its %s ends every task with DeviceLostError, and closes all the same',
    async (what, message) => {
      const device = await openGpuDevice({ robust: true });
      device.put(ref('block'), block);
      device.put(ref('a'), factors(2, 5));
      const lost = device.lose(what).catch((error: unknown) => error);
      const running = device.run(norm('a')).catch((error: unknown) => error);
      await lost;
      expect(await running).toBeInstanceOf(DeviceLostError);
      await expect(device.run(norm('a'))).rejects.toThrow(message);
      await expect(device.fetch(ref('a'))).resolves.toMatchObject({ rows: 2 });
      device.release(ref('a'));
      await device.trim();
      await device.close();
    },
  );
});

describe.skipIf(noGpu)('without an adapter', () => {
  it('a GPU is refused with advice', async () => {
    const driver = process.env.VK_DRIVER_FILES;
    process.env.VK_DRIVER_FILES = '/dev/null';
    try {
      const opening = openGpuDevice();
      await expect(opening).rejects.toBeInstanceOf(UsageError);
      await expect(opening).rejects.toThrow(
        /no GPU: WebGPU found no adapter on this machine\. Install the driver/,
      );
    } finally {
      process.env.VK_DRIVER_FILES = driver;
    }
  });
});

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
