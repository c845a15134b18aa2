/**
 * Rows between two GPUs: with padding, in float32 or only in float16, in reused memory; and training on
 * several GPUs by parts.
 */
import { readSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { toHalf, fromHalf } from '../../engine/numbers/half.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { HostMemory } from '../../engine/run/host-memory.ts';
import type { GpuDevice } from '../../gpu/device.ts';
import { MemoryFiles } from '../../gpu/exchange/memory-files.ts';
import { openGpuDevice } from '../../gpu/open-gpu-device.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';

const ROWS = 5;
const COLUMNS = 20;
const STRIDE = 32;
const ref = (name: string): PartitionRef => ({ name, partition: 0, version: 0 });

function matrix(seed: number): Partition {
  const values = sharedArray(Float32Array, ROWS * COLUMNS);
  for (let i = 0; i < values.length; i++) values[i] = Math.sin(seed * i);
  return { layout: 'factors', rows: ROWS, columns: { values } };
}

/** Rows with their padding. */
function padded({ columns: { values } }: Partition): Float32Array {
  const rows = new Float32Array(ROWS * STRIDE);
  for (let row = 0; row < ROWS; row++)
    rows.set((values as Float32Array).subarray(row * COLUMNS, (row + 1) * COLUMNS), row * STRIDE);
  return rows;
}

/** The bytes of received rows, from an array or from files. */
function bytesOf({ columns, inFiles }: Partition): Uint8Array<ArrayBuffer> {
  if (inFiles === undefined)
    return new Uint8Array(columns.values.buffer as SharedArrayBuffer, 0, columns.values.byteLength).slice();
  const {
    memory: { files, pieceBytes },
    bytes,
  } = inFiles;
  const all = new Uint8Array(bytes);
  for (let at = 0, piece = 0; at < bytes; at += pieceBytes, piece++)
    readSync(
      files[piece % files.length],
      all,
      at,
      Math.min(pieceBytes, bytes - at),
      Math.floor(piece / files.length) * pieceBytes,
    );
  return all;
}

const floats = (came: Partition) => new Float32Array(bytesOf(came).buffer);
const halves = (came: Partition) => new Uint16Array(bytesOf(came).buffer);
const filesInMemory = new MemoryFiles();
const noFiles = filesInMemory.make(1) === undefined;

describe.skipIf(noGpu !== undefined).each([
  ['arrays', false],
  ['files in memory', true],
])('rows on their way from one GPU to another, by %s', (_, inFiles) => {
  beforeEach(({ skip }) =>
    skip(inFiles && noFiles, 'there are no files in memory here: rows between GPUs go through arrays'),
  );
  let from: GpuDevice;
  let to: GpuDevice;
  beforeAll(async () => {
    from = await openGpuDevice({ robust: true });
    to = await openGpuDevice({ robust: true, place: 'gpu:1' });
  });
  afterAll(async () => void (await Promise.all([from?.close(), to?.close()])));

  const memory = new HostMemory(inFiles ? filesInMemory : undefined);
  afterAll(() => memory.close());
  const take = (bytes: number) => memory.take(bytes);
  const place = (rows: string, whole: string, rowFrom: number) =>
    to.run({
      kernel: 'place-rows',
      inputs: { rows: ref(rows) },
      outputs: { whole: ref(whole) },
      params: { rowFrom },
    });

  /** A matrix that a task has written on that device. */
  const make = async (made: Partition) => {
    from.put(ref('given'), made);
    from.allocate(ref('a'), { rows: ROWS, columns: COLUMNS, stride: STRIDE });
    await from.run({
      kernel: 'place-rows',
      inputs: { rows: ref('given') },
      outputs: { whole: ref('a') },
      params: { rowFrom: 0 },
    });
    from.release(ref('given'));
  };

  it('are those of the matrix in every bit, and stand in a part of the other', async () => {
    const [a, b] = [matrix(1), matrix(2)];
    await make(a);
    const came = await from.fetch(ref('a'), { form: 'f32', take });
    expect(came).toMatchObject({ layout: 'wire-rows', rows: ROWS });
    expect(came.inFiles !== undefined).toBe(inFiles);
    expect([...floats(came)]).toEqual([...padded(a)]);
    to.put(ref('a'), came);
    to.put(ref('b'), b);
    to.allocate(ref('all'), { rows: 2 * ROWS, columns: COLUMNS, stride: STRIDE });
    const { metrics } = await place('a', 'all', ROWS);
    expect(metrics).toMatchObject({ rows: ROWS, bytesUp: 4 * ROWS * STRIDE });
    // Rows that the device already has are copied there.
    expect((await place('b', 'all', 0)).metrics).toMatchObject({ rows: ROWS, bytesUp: 4 * ROWS * STRIDE });
    expect([...((await to.fetch(ref('all'))).columns.values as Float32Array)]).toEqual([
      ...(b.columns.values as Float32Array),
      ...(a.columns.values as Float32Array),
    ]);
    for (const name of ['a', 'b', 'all']) to.release(ref(name));
    from.release(ref('a'));
  });

  it('are half the bytes in float16, for a matrix that is kept in float16 alone', async () => {
    const [a, b] = [matrix(3), matrix(4)];
    await make(a);
    const came = await from.fetch(ref('a'), { form: 'f16', take });
    expect([...halves(came)]).toEqual([...toHalf(padded(a))]);
    to.put(ref('a'), came);
    to.put(ref('b'), b);
    to.allocate(ref('all'), { rows: 2 * ROWS, columns: COLUMNS, stride: STRIDE, halfOnly: true });
    expect((await place('a', 'all', 0)).metrics.bytesUp).toBe(2 * ROWS * STRIDE);
    await place('b', 'all', ROWS);
    const all = await to.fetch(ref('all'), { form: 'f16', take });
    expect([...halves(all).subarray(0, 2 * ROWS * STRIDE)]).toEqual([
      ...toHalf(padded(a)),
      ...toHalf(padded(b)),
    ]);
    // Neither a task nor a fetch can read it as float32.
    await expect(to.fetch(ref('all'))).rejects.toThrow('partition all/0@0 has its half mirror alone');
    await expect(
      to.run({
        kernel: 'gram',
        inputs: { factors: ref('all') },
        outputs: { gram: ref('b') },
        params: { rank: COLUMNS, weight: 1 },
      }),
    ).rejects.toThrow('task gram: of the matrix named factors there is a copy of half the width alone');
    to.put(ref('wide'), await from.fetch(ref('a'), { form: 'f32', take }));
    await expect(place('wide', 'all', 0)).rejects.toThrow(
      'task place-rows: the rows and the matrix are in different precisions',
    );
    for (const name of ['a', 'b', 'all', 'wide']) to.release(ref(name));
    from.release(ref('a'));
  });

  it('are a quarter of the bytes in 8 bits, and both GPUs then have the same rounded rows', async () => {
    const a = matrix(3);
    await make(a);
    const came = await from.fetch(ref('a'), { form: 'i8', take });
    to.put(ref('a'), came);
    const all = { rows: ROWS, columns: COLUMNS, stride: STRIDE, halfOnly: true };
    const rounded: number[][] = [];
    for (const device of [from, to]) {
      device.allocate(ref('all'), all);
      const { metrics } = await device.run({
        kernel: 'place-rows',
        inputs: { rows: ref('a') },
        outputs: { whole: ref('all') },
        params: { rowFrom: 0, rounded: true },
      });
      // With the largest number of each column.
      expect(metrics.bytesUp).toBe(device === to ? ROWS * STRIDE + 4 * STRIDE : 0);
      const found = await device.fetch(ref('all'), { form: 'f16', take });
      rounded.push([...halves(found).subarray(0, ROWS * STRIDE)].map(fromHalf));
      for (const name of ['a', 'all']) device.release(ref(name));
    }
    expect(rounded[1]).toEqual(rounded[0]);
    const expected = padded(a);
    const largest = Math.max(...expected.map(Math.abs));
    rounded[0].forEach((x, at) => expect(Math.abs(x - expected[at])).toBeLessThan(largest / 200));
  });

  it('may be placed while later ones are still written', async () => {
    const a = matrix(7);
    await make(a);
    const endings: Promise<void>[] = [];
    const came = await from.fetch(ref('a'), {
      form: 'f32',
      take,
      arriving: (ended) => void endings.push(ended),
    });
    expect(endings).toHaveLength(inFiles ? 1 : 0);
    to.put(ref('a'), came);
    to.allocate(ref('all'), { rows: ROWS, columns: COLUMNS, stride: STRIDE });
    await place('a', 'all', 0);
    await Promise.all(endings);
    expect([...((await to.fetch(ref('all'))).columns.values as Float32Array)]).toEqual([
      ...(a.columns.values as Float32Array),
    ]);
    if (came.inFiles?.arrived !== undefined) {
      expect([...came.inFiles.arrived]).toEqual([1]);
      to.put(ref('lost'), { ...came, inFiles: { ...came.inFiles, arrived: Int32Array.of(-1) } });
      await expect(place('lost', 'all', 0)).rejects.toThrow('rows of another device did not arrive');
      to.release(ref('lost'));
    }
    for (const device of [from, to]) for (const name of ['a', 'all']) device.release(ref(name));
  });

  it('of many pieces come whole, several matrices at once', async () => {
    const rows = 150_001;
    const wide = (name: string): Partition => {
      const values = sharedArray(Float32Array, rows * COLUMNS);
      for (let i = 0; i < values.length; i++) values[i] = i + (name === 'x' ? 0.5 : 0);
      return { layout: 'factors', rows, columns: { values } };
    };
    const names = ['x', 'y', 'z'];
    await Promise.all(
      names.map(async (name) => {
        from.put(ref(name), wide(name));
        from.allocate(ref(`${name}-made`), { rows, columns: COLUMNS, stride: STRIDE });
        await from.run({
          kernel: 'place-rows',
          inputs: { rows: ref(name) },
          outputs: { whole: ref(`${name}-made`) },
          params: { rowFrom: 0 },
        });
        to.put(ref(name), await from.fetch(ref(`${name}-made`), { form: 'f32', take }));
        to.allocate(ref(`${name}-came`), { rows, columns: COLUMNS, stride: STRIDE });
        await place(name, `${name}-came`, 0);
      }),
    );
    for (const name of names) {
      const values = (await to.fetch(ref(`${name}-came`))).columns.values as Float32Array;
      expect(
        Buffer.compare(
          Buffer.from(values.buffer),
          Buffer.from((wide(name).columns.values as Float32Array).buffer),
        ),
      ).toBe(0);
      for (const device of [from, to])
        for (const one of [name, `${name}-made`, `${name}-came`]) device.release(ref(one));
    }
  });

  it('are added to a matrix', async () => {
    const [a, b] = [matrix(5), matrix(6)];
    await make(a);
    to.put(ref('a'), await from.fetch(ref('a'), { form: 'f32', take }));
    to.put(ref('b'), b);
    await to.run({
      kernel: 'add-rows',
      inputs: { addend: ref('a') },
      outputs: { sum: ref('b') },
      params: { from: 0, to: ROWS },
    });
    const sum = (b.columns.values as Float32Array).map(
      (value, i) => value + (a.columns.values as Float32Array)[i],
    );
    expect([...((await to.fetch(ref('b'))).columns.values as Float32Array)]).toEqual([...sum]);
    for (const name of ['a', 'b']) to.release(ref(name));
    from.release(ref('a'));
  });
});
