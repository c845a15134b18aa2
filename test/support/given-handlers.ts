/** A module of handlers for CpuDevice, as its threads import it. */
import { setTimeout as pause } from 'node:timers/promises';
import type { GivenHandlers } from '../../cpu/handler.ts';
import { DataError } from '../../engine/errors.ts';

export const handlers: GivenHandlers = {
  sum: async ({ params, partition }) => {
    await pause(1);
    const values = partition('numbers').columns.values as Float64Array;
    return { rows: values.length, values: { sum: values.reduce((sum, value) => sum + value, Number(params.start)) } };
  },
  fail: async () => {
    await pause(1);
    throw new DataError('no such row', { phase: 'read', file: 'ratings.parquet' });
  },
};
