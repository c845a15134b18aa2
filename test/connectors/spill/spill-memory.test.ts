/** The place `spill`: partitions in Arrow files, and memory that is used again for the next one. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tableFromIPC } from 'apache-arrow';
import { afterAll, describe, expect, it } from 'vitest';
import { SpillFolder } from '../../../connectors/spill/spill-folder.ts';
import { CpuDevice } from '../../../cpu/device.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { SpillMemory } from '../../../connectors/spill/spill-memory.ts';
import { contracts } from '../../../operators/tasks/tasks.ts';
import { contextOf } from '../../support/steps/small-problems.ts';

const parent = mkdtempSync(join(tmpdir(), 'factorflow-spilled-parts-'));
afterAll(() => rmSync(parent, { recursive: true }));

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

/** A folder, its store, and the files in it. */
function spillPlace() {
  const folder = new SpillFolder(parent);
  const files = async () => readdirSync(await folder.open()).sort();
  return { folder, store: new SpillMemory(folder), files };
}

describe('the place spill', () => {
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
    await store.write(refOf(0), written);
    expect(await store.fetch(refOf(0))).toEqual({ ...written, reused: true });
    const [row] = tableFromIPC(readFileSync(join(await folder.open(), '0')))
      .toArray()
      .map((one) => one.toJSON());
    expect(Array.from(row['0.d'] as Iterable<number>)).toEqual([1 / 3, 2]);
    expect(Array.from(row['0.e'] as Iterable<number>)).toEqual([1, 2, 3]);
    await store.close();
    await folder.close();
  });

  it('reads into memory that was given back, and into new memory while there is none', async () => {
    const { folder, store } = spillPlace();
    for (let part = 0; part < 3; part++) await store.write(refOf(part), block(1000, part));
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
    await folder.close();
  });

  it('says so where a file was changed, and removes the file of what is released', async () => {
    const { folder, store, files } = spillPlace();
    await store.write(refOf(0), block(100, 1));
    await store.write(refOf(1), block(100, 2));
    truncateSync(join(await folder.open(), '0'), 500);
    await expect(store.fetch(refOf(0))).rejects.toThrow(/a spill file was changed by another program/);
    store.release(refOf(1));
    await expect.poll(files).toEqual(['0']);
    await expect(store.fetch(refOf(1))).rejects.toThrow('was not spilled');
    await folder.close();
  });

  it('serves tasks by moves, and holdings remove the files of what is left', async () => {
    const { folder, store, files } = spillPlace();
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
    await folder.close();
  });
});
