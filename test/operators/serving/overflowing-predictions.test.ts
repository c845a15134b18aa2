import { expect, it } from 'vitest';
import { Model } from '../../../index.ts';
import { batchOf } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession({ workers: 1 });

/** User 1 predicts 1 for item 1; user 2 has ∞ - ∞. */
const model = () =>
  new Model({
    rank: 2,
    users: { type: 'int32', values: Int32Array.of(1, 2) },
    items: { type: 'int32', values: Int32Array.of(1, 2) },
    userFactors: Float32Array.of(1, 0, 3e38, 3e38),
    itemFactors: Float32Array.of(1, 0, 3e38, -3e38),
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'drop',
    session,
  });

const pairs = () =>
  session.from([
    batchOf({
      user: { type: 'int32', values: [9, 1, 2, 1] },
      item: { type: 'int32', values: [1, 1, 2, 7] },
      rating: { type: 'float32', values: [3, 3, 3, 3] },
    }),
  ]);

it('a known pair whose prediction is no number is not taken for a cold one', async () => {
  const rows: unknown[] = [];
  for await (const batch of model().predict(pairs()))
    for (let i = 0; i < batch.numRows; i++)
      rows.push([0, 1, 3].map((column) => batch.getChildAt(column)?.get(i)));
  expect(rows).toEqual([
    [1, 1, 1],
    [2, 2, Number.NaN],
  ]);
});

it('an error that is no number makes the RMSE none, and is not averaged in as 0', async () => {
  expect(await model().evaluate(pairs())).toEqual({
    rmse: Number.NaN,
    mae: Number.NaN,
    pairs: 4,
    coldPairs: 2,
    badRows: 0,
    warnings: [expect.objectContaining({ code: 'mostly-cold' })],
  });
});
