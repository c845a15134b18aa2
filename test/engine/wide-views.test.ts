/**
 * Arrays beyond 4 GiB reach other threads whole, and models that no device holds are still saved, loaded and
 * scored.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CpuDevice } from '../../cpu/device.ts';
import type { Partition, PartitionRef } from '../../engine/partition.ts';
import { viewLimit } from '../../engine/threads/wide-views.ts';
import { readFactors } from '../../connectors/model/factor-table.ts';
import { ALS, Model, Session } from '../../index.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const usual = viewLimit.bytes;
afterEach(() => {
  viewLimit.bytes = usual;
});

const rows = randomRatings(23, 120, 80, 3000);
const ref = (name: string): PartitionRef => ({ name, partition: 0, version: 0 });

/**
 * Rows of two numbers; the last `used` rows are beyond 4 GiB. Memory that is not written occupies no pages.
 */
function beyond(used: number): Float32Array {
  const values = new Float32Array(new SharedArrayBuffer(2 ** 32 + 8 * used));
  for (let row = 0; row < used; row++) values.set([row + 1, 2 * row], values.length - 2 * (used - row));
  return values;
}

describe('an array beyond 4 GiB', () => {
  it('is read in a thread where it lies, from its last rows', async () => {
    const device = new CpuDevice({ threads: 1 });
    try {
      const [used, first] = [5, 2 ** 29];
      const x = beyond(used);
      const factors = (values: Float32Array): Partition => ({
        layout: 'factor-rows',
        rows: values.length / 2,
        columns: { values },
      });
      device.put(ref('x'), factors(x));
      // The view begins beyond 4 GiB, and is short.
      device.put(ref('theta'), factors(x.subarray(2 * first)));
      device.put(ref('pairs'), {
        layout: 'pairs',
        rows: 3,
        columns: { rows: Uint32Array.from([first, first + 4, 7]), columns: Uint32Array.from([1, 4, 4]) },
      });
      await device.run({
        kernel: 'predict',
        inputs: { pairs: ref('pairs'), rowFactors: ref('x'), columnFactors: ref('theta') },
        outputs: { predictions: ref('found') },
        params: { rank: 2 },
      });
      // [1, 0] · [2, 2], [5, 8] · [5, 8], [0, 0] · [5, 8]
      expect(Array.from((await device.fetch(ref('found'))).columns.values as Float32Array)).toEqual([
        2, 89, 0,
      ]);
    } finally {
      await device.close();
    }
  });

  it('is written to a part file by a thread, in its last rows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'factorflow-wide-'));
    await using session = await Session.create({ device: 'cpu', workers: 1 });
    try {
      const [from, to] = [2 ** 29, 2 ** 29 + 3];
      const ids = new Int32Array(new SharedArrayBuffer(4 * to));
      ids.set([70, 80, 90], from);
      const [device] = session.context().executor.devices;
      device.put(ref('factors'), { layout: 'factor-rows', rows: to, columns: { 'values.0': beyond(3) } });
      device.put(ref('ids'), { layout: 'ids', rows: to, columns: { values: ids } });
      await device.run({
        kernel: 'write-factors',
        inputs: { ids: ref('ids'), factors: ref('factors') },
        outputs: {},
        params: { file: join(folder, 'part-00000.parquet'), from, to, rows: to, columns: 2 },
      });
      for (const name of ['ids', 'factors']) device.release(ref(name));
      const { ids: written, factors } = await readFactors(folder, 2);
      expect(written).toMatchObject({ values: Int32Array.of(70, 80, 90) });
      expect(Array.from(factors)).toEqual([1, 0, 2, 2, 3, 4]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

const sidesOf = ({ userFactors, itemFactors }: Model) =>
  [userFactors, itemFactors].map((batch) => batch.data.children[1].children[0].values as Float32Array);

describe.each([
  { device: 'cpu' as const, skip: undefined },
  { device: 'gpu' as const, skip: noGpu },
])('with every array sent as one beyond 4 GiB, $device', ({ device, skip }) => {
  it.skipIf(skip)(
    'trains, saves, loads and evaluates as without',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'factorflow-wide-'));
      try {
        await using session = await Session.create({ device, workers: 2 });
        const run = async (name: string) => {
          const model = await new ALS({
            rank: 5,
            maxIter: 2,
            seed: 1,
            partitionUsers: '1,3',
            partitionItems: '3,1',
          }).fit(session.from(ratingBatches(rows)));
          await model.save(join(folder, name));
          const loaded = await Model.load(session, join(folder, name));
          expect(sidesOf(loaded)).toEqual(sidesOf(model));
          return [...sidesOf(loaded), await loaded.evaluate(session.from(ratingBatches(rows)))];
        };
        const without = await run('usual');
        viewLimit.bytes = 100;
        expect(await run('wide')).toEqual(without);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    120_000,
  );
});

describe('a model that no device holds', () => {
  it.skipIf(noGpu)(
    'is evaluated from host memory, to the error that training told',
    async () => {
      await using large = await Session.create({ device: 'gpu', workers: 2 });
      const model = await new ALS({ rank: 5, maxIter: 2, seed: 1 }).fit(large.from(ratingBatches(rows)));
      const folder = mkdtempSync(join(tmpdir(), 'factorflow-wide-'));
      try {
        await model.save(join(folder, 'model'));
        await using small = await Session.create({ device: 'gpu', workers: 2, deviceMemory: 4000 });
        const { rmse, pairs } = await (
          await Model.load(small, join(folder, 'model'))
        ).evaluate(small.from(ratingBatches(rows)));
        expect(pairs).toBe(rows.length);
        expect(rmse / model.training!.iterations.at(-1)!.trainRmse!).toBeCloseTo(1, 4);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    120_000,
  );
});
