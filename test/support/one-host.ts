import { tableFromIPC } from 'apache-arrow';
import { expect } from 'vitest';
import { ALS, type AlsOptions, type Model } from '../../index.ts';
import { cpuSession } from './cpu-session.ts';
import { ratingStream, type Triples } from './worker-parent.ts';

/** The training on one host, in this process. */
export async function oneHost(params: AlsOptions, ratings: Triples) {
  const session = await cpuSession({ workers: 1 });
  const { userArrays, itemArrays, training } = await ALS.spark(params).fit(
    session.from(tableFromIPC(ratingStream(ratings)).batches),
  );
  return {
    users: rowsOfArrays(userArrays),
    items: rowsOfArrays(itemArrays),
    last: training?.iterations.at(-1),
  };
}

/** The factors of each id. */
export const rowsOfArrays = ({ ids, values, columns }: Model['userArrays']) =>
  new Map(
    Array.from(ids as Int32Array, (id, row) => [
      Number(id),
      [...values.subarray(row * columns, (row + 1) * columns)],
    ]),
  );

/** The largest difference of two sets of rows, relative to the largest value. */
export function largestDifference(a: Map<number, number[]>, b: Map<number, number[]>): number {
  expect([...a.keys()]).toEqual([...b.keys()]);
  let [most, size] = [0, 0];
  for (const [id, row] of a) {
    row.forEach((value, k) => {
      most = Math.max(most, Math.abs(value - (b.get(id)?.[k] ?? Number.NaN)));
      size = Math.max(size, Math.abs(value));
    });
  }
  return most / size;
}
