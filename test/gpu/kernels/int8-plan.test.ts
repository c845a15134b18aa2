/** The workgroups of kernels in 8 bits. */
import { describe, expect, it } from 'vitest';
import { int8Plan, int8Workgroup } from '../../../gpu/int8/int8-plan.ts';
import { updateInt8Kernel } from '../../../gpu/update/update-tensor.ts';

describe('workgroups in 8 bits', () => {
  it('have sixteen threads for each tile of a row of θ, rounded up to an even number or to a power of two', () => {
    const sums = (rank: number) => int8Workgroup({ rank, biases: true }).threads;
    expect([64, 100, 128, 136, 152, 160, 168, 176, 256].map(sums)).toEqual([
      64, 128, 128, 160, 160, 160, 192, 256, 256,
    ]);
    const rows = (rank: number) => int8Workgroup({ rank, biases: true, halfA: true }).threads;
    expect([100, 128, 136, 152, 160, 256].map(rows)).toEqual([128, 128, 160, 160, 256, 256]);
  });

  it('sum each tile of A, and of the ratings, in one subgroup', () => {
    for (const [rank, tiles] of [
      [136, 45],
      [144, 54],
      [152, 55],
      [168, 66],
    ] as const) {
      const { deals, subgroups } = int8Plan({ rank, biases: true }).plan;
      const all = deals.flatMap((deal) => deal.tiles.map(({ row, column }) => `${row} ${column}`));
      expect([deals.length, all.length, new Set(all).size]).toEqual([subgroups, tiles, tiles]);
    }
  });

  it('leave 48 KiB of memory to two workgroups that solve rows of ranks 129 to 152', () => {
    for (const rank of [129, 136, 144, 152])
      expect(
        2 * updateInt8Kernel.workgroup({ rank, biases: true, halfA: true, room: 13 }).bytes,
      ).toBeLessThanOrEqual(48 * 1024);
  });
});
