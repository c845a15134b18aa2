/**
 * Stages over the blocks of a grid: the blocks that run at once, copies at a device, and endings. No device
 * computes here.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CancelledError } from '../../../engine/errors.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { GridBlock } from '../../../engine/plan/grid-order.ts';
import { cpuInfo, h200Info } from '../../support/devices/device-info.ts';
import { nameOf, Record, run } from './turn-device.ts';
import { sampleSize } from '../../support/deep.ts';

const workers = (parallelism: number): DeviceInfo[] => [{ ...cpuInfo, parallelism }];

const gpus = (count: number, inOrder = true): DeviceInfo[] =>
  Array.from({ length: count }, (_, r) => ({ ...h200Info, inOrder, place: `gpu:${r}` }));

const size = fc.integer({ min: 1, max: 12 });

describe('blocks on one device', () => {
  it('never hold a row band or a column band twice, are visited once, and keep the order within each band', async () => {
    await fc.assert(
      fc.asyncProperty(
        size,
        size,
        fc.integer({ min: 1, max: 8 }),
        fc.nat(1e6),
        async (rows, columns, threads, seed) => {
          const record = new Record(seed);
          const { planned, finished } = await run({ rows, columns, seed }, workers(threads), record);
          expect(record.wrong).toEqual([]);
          expect(finished).toEqual(Array.from(planned, (_, i) => i + 1));
          expect(record.begun.map(nameOf).sort()).toEqual(planned.map(nameOf).sort());
          for (const side of ['row', 'column'] as const) {
            for (let band = 0; band < (side === 'row' ? rows : columns); band++) {
              const of = (blocks: readonly GridBlock[]) =>
                blocks.filter((block) => block[side] === band).map(nameOf);
              expect(of(record.begun)).toEqual(of(planned));
            }
          }
        },
      ),
      { numRuns: sampleSize(60) },
    );
  });

  it('use all workers where the grid is large enough', async () => {
    const record = new Record(3);
    await run({ rows: 8, columns: 8 }, workers(4), record);
    expect(record.mostAtOnce).toBe(4);
  });

  it('end with the first failure, and begin no more', async () => {
    const record = new Record(3, { failAt: 5 });
    await expect(run({ rows: 4, columns: 4 }, workers(1), record)).rejects.toThrow('block 5 failed');
    // One block was waiting for its worker.
    expect(record.begun.length).toBeLessThanOrEqual(7);
  });
});

describe('blocks on several devices', () => {
  it.each([
    [1, 4],
    [2, 4],
    [3, 6],
    [3, 2],
    [4, 9],
  ])(
    'run %i x %i once each, a column with one device at a time in the order drawn, two copies on a device',
    async (rows, columns) => {
      for (let seed = 1; seed <= 20; seed++) {
        const record = new Record(seed);
        const { devices, planned, ctx } = await run(
          { rows, columns, seed },
          gpus(rows, seed % 2 === 0),
          record,
        );
        expect(record.wrong).toEqual([]);
        expect(record.begun.map(nameOf).sort()).toEqual(planned.map(nameOf).sort());
        for (const { most, lying } of devices) {
          expect(Math.max(most.blocks, most.columns)).toBeLessThanOrEqual(2);
          expect([...lying.keys()].filter((key) => !key.startsWith('test/rows/'))).toEqual([]);
        }
        for (let column = 0; column < columns; column++) {
          const home = ctx.executor.memory.get({ name: 'test/columns', partition: column, version: 1 });
          expect([...(home.columns.values as Float32Array)]).toEqual(
            planned.filter((block) => block.column === column).map(({ row }) => row),
          );
        }
      }
    },
  );

  it.each([true, false])(
    'have the next one on its way before the one that is stepped has ended (in order: %s)',
    async (inOrder) => {
      const record = new Record(5, { longTasks: true });
      const { planned } = await run({ rows: 1, columns: 6 }, gpus(1, inOrder), record);
      const at = (event: string) => record.events.indexOf(event);
      planned
        .slice(1)
        .forEach(({ column }, k) =>
          expect(at(`put test/blocks/${column}@0`)).toBeLessThan(at(`end ${nameOf(planned[k])}`)),
        );
    },
  );

  it('read a column at once where none writes', async () => {
    const record = new Record(6, { together: 3 });
    await run({ rows: 3, columns: 1, kernel: 'look' }, gpus(3), record);
    expect(record.mostAtOnce).toBe(3);
  });

  it('end with the first failure once all have ended, and begin no more than was on its way', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const record = new Record(seed, { failAt: seed });
      await expect(run({ rows: 3, columns: 7, seed }, gpus(3, seed % 2 === 0), record)).rejects.toThrow(
        `block ${seed} failed`,
      );
      expect(record.running.size).toBe(0);
      expect(record.begun.length).toBeLessThanOrEqual(seed + 4);
    }
  });

  it('are cancelled', async () => {
    const controller = new AbortController();
    const record = new Record(8, { onBegin: (count) => void (count === 3 && controller.abort()) });
    await expect(run({ rows: 2, columns: 6 }, gpus(2), record, controller.signal)).rejects.toBeInstanceOf(
      CancelledError,
    );
    expect(record.running.size).toBe(0);
    expect(record.begun.length).toBeLessThanOrEqual(5);
  });
});
