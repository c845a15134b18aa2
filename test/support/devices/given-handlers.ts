/** A module of handlers for CpuDevice, as its threads import it. */
import { setTimeout as pause } from 'node:timers/promises';
import type { GivenHandlers } from '../../../cpu/handler.ts';
import { DataError } from '../../../engine/errors.ts';

let remembered: WeakRef<object> | undefined;

export const handlers: GivenHandlers = {
  /** Makes an object that only a WeakRef refers to. */
  remember: () => {
    remembered = new WeakRef({});
    return { rows: 0 };
  },
  recall: () => ({ rows: 0, values: { kept: remembered?.deref() !== undefined } }),
  sum: async ({ params, partition }) => {
    await pause(1);
    const values = partition('numbers').columns.values as Float64Array;
    return {
      rows: values.length,
      values: { sum: values.reduce((sum, value) => sum + value, Number(params.start)) },
    };
  },
  /** Ends its thread by itself, as often as `params.times` says. */
  end: async ({ params, partition }) => {
    const ended = partition('numbers').columns.values as Float64Array;
    if (ended[0] < Number(params.times)) {
      ended[0]++;
      process.exit(7);
    }
    return { rows: 1, values: { ended: ended[0] } };
  },
  fail: async () => {
    await pause(1);
    throw new DataError('no such row', { phase: 'read', file: 'ratings.parquet' });
  },
};
