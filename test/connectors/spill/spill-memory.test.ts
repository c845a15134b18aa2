/** The place `spill`: partitions in Arrow files, and memory that is used again for the next one. */
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { tableFromIPC } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { SpillFolder } from '../../../connectors/spill/spill-folder.ts';
import { writeSpilled } from '../../../cpu/write-spilled.ts';
import { CpuDevice } from '../../../cpu/device.ts';
import { DataError } from '../../../engine/errors.ts';
import {
  type Partition,
  type PartitionRef,
  sharedArray,
  type SpilledPartition,
} from '../../../engine/partition.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { SpillMemory } from '../../../connectors/spill/spill-memory.ts';
import { contracts } from '../../../operators/tasks/tasks.ts';
import { contextOf } from '../../support/steps/small-problems.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const parent = temporaryFolder();

const refOf = (partition: number): PartitionRef => ({ name: 'block', partition, version: 0 });

function block(rows: number, seed: number): Partition {
  const [offsets, indices, values] = [
    sharedArray(Int32Array, rows + 1),
    sharedArray(Uint32Array, 3 * rows),
    sharedArray(Float32Array, 3 * rows),
  ];
  for (let row = 0; row < rows; row++) offsets[row + 1] = 3 * (row + 1);
  for (let k = 0; k < 3 * rows; k++) [indices[k], values[k]] = [(k * 7 + seed) % 1000, seed + k / 4];
  return { layout: 'rating-block', rows, columns: { offsets, indices, values } };
}

const writes = (partitions: readonly Partition[]) => async (file: string) => writeSpilled(file, partitions);

/** Changes one bit of a file. */
function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes[at] ^= 4;
  writeFileSync(file, bytes);
}

/** A folder, its store, and the files in it. */
function spillPlace() {
  const folder = new SpillFolder(parent);
  const files = async () => readdirSync(await folder.open()).sort();
  return { folder, store: new SpillMemory(folder), files };
}

describe('the place spill', () => {
  it('keeps the file of a result until it is dropped, also after its partition is freed', async () => {
    const { store, files } = spillPlace();
    const values = Float32Array.of(1, 2, 3, 4, 5, 6);
    const written: Partition = { layout: 'factors', rows: 2, columns: { values } };
    await store.write([refOf(0)], writes([written]));
    const { stored, rows } = store.keep(refOf(0));
    store.release(refOf(0));
    expect([rows, await files()]).toEqual([2, ['0']]);
    expect(stored?.read()).toEqual(values);
    stored?.drop();
    stored?.drop();
    await expect.poll(files).toEqual([]);
    expect(() => stored?.read()).toThrow(DataError);
    expect(() => store.keep(refOf(0))).toThrow('was not spilled');
    await store.close();
  });

  it('allocates zeros without a file, and replaces them by what is written', async () => {
    const { store, files } = spillPlace();
    store.allocate(refOf(0), { rows: 3, columns: 2, stride: 2 });
    const zeros = await store.fetch(refOf(0));
    expect([zeros.rows, Array.from(zeros.columns.values as Float32Array)]).toEqual([3, [0, 0, 0, 0, 0, 0]]);
    expect(await files()).toEqual([]);
    const values = Float32Array.of(1, 2, 3, 4, 5, 6);
    await store.write([refOf(0)], writes([{ layout: 'factors', rows: 3, columns: { values } }]));
    expect((await store.fetch(refOf(0))).columns.values).toEqual(values);
    store.release(refOf(0));
    await expect.poll(files).toEqual([]);
    await store.close();
  });

  it('gives back what was written, with every kind of column, from files that are Arrow', async () => {
    const { folder, store } = spillPlace();
    const kinds = {
      a: Int32Array.of(1, -2),
      b: Uint32Array.of(7),
      c: Float32Array.of(0.5),
      d: Float64Array.of(1 / 3, 2),
      e: Uint8Array.of(1, 2, 3),
      f: Uint16Array.of(9),
      g: BigInt64Array.of(-5n),
      none: new Float32Array(0),
    };
    const written: Partition = { layout: 'any', rows: 2, columns: kinds };
    await store.write([refOf(0)], writes([written]));
    expect(await store.fetch(refOf(0))).toEqual({ ...written, reused: true });
    const [row] = tableFromIPC(readFileSync(join(await folder.open(), '0')))
      .toArray()
      .map((one) => one.toJSON());
    expect(Array.from(row.d as Iterable<number>)).toEqual([1 / 3, 2]);
    expect(Array.from(row.e as Iterable<number>)).toEqual([1, 2, 3]);
    await store.close();
    expect(readdirSync(parent)).toEqual([]);
  });

  it('keeps several partitions in one file, with their places in its footer', async () => {
    const { folder, store, files } = spillPlace();
    const codes: Partition = { layout: 'codes', rows: 3, columns: { users: Uint32Array.of(3, 1, 2) } };
    const values: Partition = { layout: 'values', rows: 3, columns: { values: Float32Array.of(5, 4, 0.5) } };
    await store.write([refOf(0), refOf(1)], writes([codes, values]));
    expect(await files()).toEqual(['0']);
    const table = tableFromIPC(readFileSync(join(await folder.open(), '0')));
    expect(table.toArray().map((row) => JSON.parse(JSON.stringify(row)))).toEqual([
      { users: [3, 1, 2], values: [] },
      { users: [], values: [5, 4, 0.5] },
    ]);
    const directory = JSON.parse(table.schema.metadata.get('partitions') ?? '') as SpilledPartition[];
    expect(directory.map(({ layout, rows }) => [layout, rows])).toEqual([
      ['codes', 3],
      ['values', 3],
    ]);
    const { at, length } = directory[1].columns.values;
    const bytes = readFileSync(join(await folder.open(), '0')).subarray(at, at + 4 * length);
    expect(bytes).toEqual(Buffer.from(values.columns.values.buffer));
    expect(directory[1].checksum).toBe(crc32(bytes));
    store.release(refOf(0));
    expect(await store.fetch(refOf(1))).toEqual({ ...values, reused: true });
    store.release(refOf(1));
    await expect.poll(files).toEqual([]);
    await store.close();
  });

  it('reads into memory that was given back, and into new memory while there is none', async () => {
    const { store } = spillPlace();
    for (let part = 0; part < 3; part++) await store.write([refOf(part)], writes([block(1000, part)]));
    const [first, second] = [await store.fetch(refOf(0)), await store.fetch(refOf(1))];
    expect(second.columns.values.buffer).not.toBe(first.columns.values.buffer);
    store.copies.add('cpu', refOf(0), first);
    const readEnds = store.copies.read('cpu', [refOf(0)]);
    store.copies.free('cpu', refOf(0));
    // A task still reads the copy that was freed.
    expect((await store.fetch(refOf(1))).columns.values.buffer).not.toBe(first.columns.values.buffer);
    readEnds();
    const third = await store.fetch(refOf(2));
    expect(third.columns.values.buffer).toBe(first.columns.values.buffer);
    expect(third).toEqual({ ...block(1000, 2), reused: true });
    expect(second).toEqual({ ...block(1000, 1), reused: true });
    await store.close();
  });

  it.each<[string, (file: string) => void, string]>([
    ['cut off', (file) => truncateSync(file, 500), 'is cut off'],
    ['changed in one bit', (file) => flip(file, 6000), 'has another checksum'],
    ['removed', (file) => rmSync(file), 'is gone'],
  ])('names file and partition where the file was %s', async (_, damage, found) => {
    const { folder, store, files } = spillPlace();
    const device = new CpuDevice({ threads: 1 });
    const refs = [refOf(0), refOf(1)];
    const stubs = await store.write(refs, writes([block(100, 1), block(100, 2)]));
    const file = join(await folder.open(), '0');
    damage(file);
    device.put(refOf(1), stubs[1]);
    const readers = [
      () => store.fetch(refOf(1)),
      () => device.fetch(refOf(1)),
      () =>
        device.run({
          kernel: 'find-duplicates',
          inputs: { block: refOf(1) },
          outputs: {
            lengths: { ...refOf(1), name: 'lengths' },
            repeated: { ...refOf(1), name: 'repeated' },
          },
          params: { from: 0, to: 100 },
        }),
    ];
    for (const read of readers) {
      const failure = await read().catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(DataError);
      expect(failure).toMatchObject({
        summary: `a spill file was changed by another program: its partition 1 (rating-block) ${found}`,
        details: { phase: 'spill', file },
      });
    }
    for (const ref of refs) store.release(ref);
    await expect.poll(files).toEqual([]);
    await expect(store.fetch(refOf(1))).rejects.toThrow('was not spilled');
    await Promise.all([device.close(), store.close()]);
  });

  it('takes partitions of a device by a step, whose tasks read them from the file until they are freed', async () => {
    const { store, files } = spillPlace();
    const device = new CpuDevice({ threads: 2 });
    const ctx = contextOf(new LocalExecutor([device], store));
    const refs = [refOf(0), refOf(1)];
    const steps = new StepList(contracts);
    steps.spill('spill', 'cpu', refs);
    await runSteps(steps.steps, ctx, {
      given: refs.map((ref, part) => [ref, block(50, part), 'cpu'] as const),
    });
    expect(await files()).toEqual(['0']);
    expect(await device.fetch(refOf(1))).toEqual(block(50, 1));
    for (const [i, ref] of refs.entries()) {
      const freeing = new StepList(contracts);
      freeing.free('spill', 'cpu', [ref]);
      await runSteps(freeing.steps, ctx);
      if (i === 0) expect(await files()).toEqual(['0']);
    }
    await expect.poll(files).toEqual([]);
    await Promise.all([device.close(), store.close()]);
  });

  it('serves tasks by moves, and holdings remove the files of what is left', async () => {
    const { store, files } = spillPlace();
    const device = new CpuDevice({ threads: 2 });
    const ctx = contextOf(new LocalExecutor([device], store));
    const lengths = await Holdings.within(ctx, async (held) => {
      const spilling = new StepList(contracts);
      const parts = [0, 1, 2, 3].map((part) => [refOf(part), block(1000 + part, part), 'cpu'] as const);
      for (const [ref] of parts) {
        spilling.move('spill', ref, 'cpu', SPILL);
        spilling.free('spill', 'cpu', [ref]);
      }
      await runSteps(spilling.steps, held, { given: parts });
      expect(await files()).toHaveLength(4);
      const reading = new StepList(contracts);
      for (let part = 0; part < 4; part++) {
        const outputs = {
          lengths: { ...refOf(part), name: 'lengths' },
          repeated: { ...refOf(part), name: 'repeated' },
        };
        reading.move('look', refOf(part), SPILL, 'cpu');
        const task = reading.task('look', 'cpu', {
          kernel: 'find-duplicates',
          inputs: { block: refOf(part) },
          outputs,
          params: { from: 0, to: 1000 + part },
        });
        reading.handOut('look', outputs.lengths, 'cpu', task);
        reading.free('look', 'cpu', [refOf(part), outputs.lengths, outputs.repeated]);
      }
      return (await runSteps(reading.steps, held)).handed.map(({ columns }) =>
        (columns.lengths as Int32Array).reduce((sum, one) => sum + one, 0),
      );
    });
    expect(lengths).toEqual([3000, 3003, 3006, 3009]);
    await expect.poll(files).toEqual([]);
    await device.close();
    await store.close();
  });
});
