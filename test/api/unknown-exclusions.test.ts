/** Excluded pairs that the model does not know exclude nothing, and are reported. */
import type { RecordBatch } from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { formatCount } from '../../engine/format.ts';
import { ALS, type Dataset, type Model, type ProgressEvent } from '../../index.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

const rows = randomRatings(61, 300, 80, 3000);
const users = [...new Set(rows.map(({ user }) => user))].sort((a, b) => a - b);
const strangers = rows.map(({ user, ...rest }) => ({ user: user + 1_000_000, ...rest }));
let model: Model;
const session = await cpuSession();
beforeAll(async () => {
  model = await new ALS({ rank: 4, maxIter: 1 }).fit(session.from(ratingBatches(rows)));
});

/** The coded events of a list, and its pairs. */
async function listed(lists: Dataset) {
  const events: ProgressEvent[] = [];
  const batches: RecordBatch[] = [];
  for await (const batch of await lists.stream({ onEvent: (event) => events.push(event) }))
    batches.push(batch);
  const pairs = batches.flatMap((batch) => batch.toArray().map((row) => `${row.user} ${row.item}`));
  return { events: codedOf(events), pairs };
}

function codedOf(events: readonly ProgressEvent[]) {
  return events.filter(
    (event) => (event.type === 'warning' || event.type === 'note') && event.code === 'unknown-exclusions',
  );
}

const ways: readonly (readonly [string, (exclude: Dataset) => Dataset])[] = [
  ['for all users', (exclude) => model.recommendForAllUsers(3, { exclude })],
  [
    'for all users, of some items',
    (exclude) => model.recommendForAllUsers(3, { exclude, deny: [rows[0].item] }),
  ],
  ['for a few users', (exclude) => model.recommendForUsers(users.slice(0, 5), 3, { exclude })],
  ['for many users', (exclude) => model.recommendForUsers(users.slice(0, 260), 3, { exclude })],
  ['for all items', (exclude) => model.recommendForAllItems(3, { exclude })],
  ['for a few items', (exclude) => model.recommendForItems([rows[0].item], 3, { exclude })],
];

describe.each(ways)('recommendations %s', (_way, recommend) => {
  it('warn where no excluded pair is known, and are silent where all are, and leave those out', async () => {
    const text = `no pair of the option exclude is known to the model: ${formatCount(rows.length)} pairs of unknown users or items, which exclude nothing. Check the ids, userCol and itemCol`;
    const { events } = await listed(recommend(session.from(ratingBatches(strangers))));
    expect(events).toEqual([{ type: 'warning', code: 'unknown-exclusions', count: rows.length, text }]);
    const { events: none, pairs } = await listed(recommend(session.from(ratingBatches(rows))));
    expect(none).toEqual([]);
    expect(pairs.length).toBeGreaterThan(0);
    const seen = new Set(rows.map(({ user, item }) => `${user} ${item}`));
    expect(pairs.filter((pair) => seen.has(pair))).toEqual([]);
  });
});

describe('model.exclusions', () => {
  const read = async (pairs: readonly { user: number; item: number; rating: number }[]) => {
    const events: ProgressEvent[] = [];
    const { unknownPairs } = await model.exclusions(session.from(ratingBatches([...pairs])), {
      onEvent: (event) => events.push(event),
    });
    return { unknownPairs, events: codedOf(events) };
  };

  it('warns where less than half of the pairs are known', async () => {
    const { events } = await read([...strangers.slice(0, 60), ...rows.slice(0, 40)]);
    expect(events).toMatchObject([
      {
        type: 'warning',
        count: 60,
        text: expect.stringMatching(
          /^only 40 of 100 pairs of the option exclude are known to the model: 60 of/,
        ),
      },
    ]);
  });

  it('notes a smaller number of unknown pairs', async () => {
    const { unknownPairs, events } = await read([...strangers.slice(0, 50), ...rows.slice(0, 50)]);
    expect([unknownPairs, events]).toMatchObject([50, [{ type: 'note', count: 50 }]]);
  });
});
