import { describe, expect, it } from 'vitest';
import { batchOrder, waveOrder } from '../../cpu/tasks/sgd/order.ts';
import { TestMemory } from './scope.ts';

const memory = new TestMemory('simd');

describe('batch-order', () => {
  const drawn = (params: Parameters<typeof batchOrder>[0]['params']) =>
    batchOrder(memory.scope(params, {}, {})).partitions!.order;
  const params = { seed: 5, stream: 0xba7c, epoch: 3, batches: 7 };

  it('draws the order of an epoch, another for each epoch, stream and block', () => {
    const { layout, rows, columns } = drawn(params);
    expect([layout, rows, [...columns.order]]).toEqual(['batch-order', 7, [1, 0, 2, 3, 6, 5, 4]]);
    expect([...drawn({ ...params, stream: 0xb10c, block: 2 }).columns.order]).toEqual([5, 1, 6, 2, 4, 3, 0]);
  });
});

describe('wave-order', () => {
  it('gives each worker every band of columns once, and no two workers the same at once', () => {
    const { layout, rows, columns } = waveOrder(
      memory.scope({ seed: 5, epoch: 4, workers: 2, columnBands: 3 }, {}, {}),
    ).partitions!.order;
    expect([layout, rows]).toEqual(['wave-order', 3]);
    expect([...columns.order]).toEqual([2, 0, 1, 2, 0, 1]);
  });

  it('leaves a worker without a band where there are more workers', () => {
    const { rows, columns } = waveOrder(
      memory.scope({ seed: 1, epoch: 1, workers: 3, columnBands: 2 }, {}, {}),
    ).partitions!.order;
    expect(rows).toBe(3);
    expect([...columns.order].sort()).toEqual([0, 0, 0, 1, 1, 1, 0xffff_ffff, 0xffff_ffff, 0xffff_ffff]);
  });
});
