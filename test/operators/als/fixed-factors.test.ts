import { describe, expect, it } from 'vitest';
import { UNKNOWN_KEY } from '../../../engine/keys/key-column.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { FixedFactors } from '../../../operators/als/rows/row-solver.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession({ workers: 1 });

/** Row r of factors has the values r, r + 0.5, r + 1, ... */
const rowsOf = (rows: readonly number[], rank: number) =>
  Float32Array.from(rows.flatMap((row) => Array.from({ length: rank }, (_, k) => row + k / 2)));

describe('factors that arrive in pieces', () => {
  it.each([5, 8])('are placed in the memory of a CPU, in any order, at rank %d', async (rank) => {
    const ctx = session.context();
    const device = computeDevice(ctx.executor);
    const before = device.memory?.now ?? 0;
    const factors = await FixedFactors.of({ rows: 6, rank }, device, ctx);
    await factors.place(Uint32Array.of(4, UNKNOWN_KEY, 0), rowsOf([4, 99, 0], rank));
    await factors.place(new Uint32Array(0), new Float32Array(0));
    await factors.place(Uint32Array.of(1, 2, 3, 5), rowsOf([1, 2, 33, 5], rank));
    // A row that arrives again replaces the first one.
    await factors.place(Uint32Array.of(3), rowsOf([3], rank));
    const { rows } = factors;
    if (!('ref' in rows)) throw new Error('the factors are in host memory');
    expect(rows.rows).toBe(6);
    const { columns } = await device.fetch(rows.ref);
    expect([...(columns.values as Float32Array)]).toEqual([...rowsOf([0, 1, 2, 3, 4, 5], rank)]);
    await factors.free();
    expect(device.memory?.now ?? 0).toBe(before);
  });

  it('for a row that there is not are an error', async () => {
    const ctx = session.context();
    const factors = await FixedFactors.of({ rows: 2, rank: 8 }, computeDevice(ctx.executor), ctx);
    await expect(factors.place(Uint32Array.of(2), rowsOf([1], 8))).rejects.toThrow(
      'there is no row 2, the matrix has 2',
    );
    await factors.free();
  });
});
