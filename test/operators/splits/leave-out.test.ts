import type { RecordBatch } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { type Dataset } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { batchOf, shuffled, testRandom } from '../../support/ratings.ts';

const session = await cpuSession();

interface Timed {
  readonly user: number | string;
  readonly item: number;
  readonly timestamp: number;
}

function batchesOf(rows: readonly Timed[], size = 61): RecordBatch[] {
  const batches: RecordBatch[] = [];
  const column = (part: readonly Timed[], name: keyof Timed, type: 'utf8' | 'int32' | 'float64') => ({
    type,
    values: part.map((row) => row[name]),
  });
  for (let from = 0; from < rows.length; from += size) {
    const part = rows.slice(from, from + size);
    batches.push(
      batchOf({
        user: column(part, 'user', typeof part[0].user === 'string' ? 'utf8' : 'int32'),
        item: column(part, 'item', 'int32'),
        timestamp: column(part, 'timestamp', 'float64'),
      }),
    );
  }
  return batches;
}

async function split(
  rows: readonly Timed[],
  leave = (all: Dataset) => all.leaveLastOut(),
): Promise<{ train: string[]; test: string[] }> {
  const { train, test } = await leave(session.from(batchesOf(rows)));
  const rowsOf = async (part: AsyncIterable<RecordBatch>) => {
    const all: string[] = [];
    for await (const batch of part) for (const row of batch.toArray()) all.push(JSON.stringify(row.toJSON()));
    return all.sort();
  };
  return { train: await rowsOf(train), test: await rowsOf(test) };
}

const random = testRandom(4);
/** Some users have a single rating, and times repeat. */
const rows: Timed[] = Array.from({ length: 2000 }, (_, item) => ({
  user: Math.floor(random() ** 2 * 400),
  item,
  timestamp: Math.floor(random() * 300) - 100,
}));

describe('leave-last-out', () => {
  it('tests on one rating of every user with two or more, none of them older than those trained on', async () => {
    const { train, test } = await split(rows);
    expect([...train, ...test].sort()).toEqual(rows.map((row) => JSON.stringify(row)).sort());
    const byUser = Map.groupBy(rows, (row) => row.user);
    const tested = test.map((row) => JSON.parse(row) as Timed);
    expect(tested.map((row) => row.user).sort()).toEqual(
      [...byUser]
        .filter(([, own]) => own.length > 1)
        .map(([user]) => user)
        .sort(),
    );
    for (const { user, timestamp } of tested)
      expect(timestamp).toBe(Math.max(...(byUser.get(user) ?? []).map((row) => row.timestamp)));
  });

  it('warns if many held-out ratings are older than half of all ratings', async () => {
    const warned = async (from: (user: number) => number) => {
      const given = Array.from({ length: 400 }, (_, k): Timed => {
        const user = k % 20;
        return { user, item: k, timestamp: 1e9 + from(user) + k };
      });
      const texts: string[] = [];
      const { test } = await session.from(batchesOf(given)).leaveLastOut({
        onEvent: (event) => event.type === 'warning' && texts.push(`${event.code} ${event.text}`),
      });
      expect(await test.count()).toBe(20);
      return texts;
    };
    // Twelve of twenty users come after the others have gone.
    const apart = await warned((user) => (user < 8 ? 0 : 1000));
    expect(apart).toEqual([
      expect.stringMatching(
        /^trained-on-future 8 of 20 held-out ratings \(40 %\) are older than half of all/,
      ),
    ]);
    expect(await warned(() => 0)).toEqual([]);
  });

  it("doesn't depend on the order of rows, and takes any ids", async () => {
    const parts = await split(rows);
    expect(await split(shuffled(rows, 6))).toEqual(parts);
    const named = rows.map((row) => ({ ...row, user: `u${row.user}` }));
    expect((await split(named)).test.length).toBe(parts.test.length);
  });

  it('names what it lacks', async () => {
    const batches = batchesOf(rows);
    await expect(session.from(batches).leaveLastOut({ timestampCol: 'when' })).rejects.toThrow(
      'there is no column "when"',
    );
    await expect(session.from(batches).leaveLastOut({ userCol: 'who', itemCol: 'item' })).rejects.toThrow(
      'there is no column "who"',
    );
    await expect(session.from(batches[Symbol.iterator]()).leaveLastOut()).rejects.toThrow(
      'leaving ratings out reads the rows more than once',
    );
    const untimed = batchOf({
      timestamp: { type: 'float64', values: [1] },
      user: { type: 'int32', values: [1] },
    });
    await expect(session.from([untimed]).leaveLastOut()).rejects.toThrow(
      'a split needs two id columns; there are: timestamp (Float64), user (Int32)',
    );
  });
});

describe('leave-out', () => {
  const byUser = Map.groupBy(rows, (row) => row.user);

  it.each(['random', 'time'] as const)(
    'tests on k ratings of every user with more than k, by %s, in any order of rows',
    async (by) => {
      const leave = (all: Dataset) => all.leaveOut(3, { by });
      const { train, test } = await split(rows, leave);
      expect([...train, ...test].sort()).toEqual(rows.map((row) => JSON.stringify(row)).sort());
      expect(await split(shuffled(rows, 8), leave)).toEqual({ train, test });
      const tested = Map.groupBy(
        test.map((row) => JSON.parse(row) as Timed),
        (row) => row.user,
      );
      for (const [user, own] of byUser) expect(tested.get(user)?.length ?? 0).toBe(own.length > 3 ? 3 : 0);
      if (by === 'random') return;
      for (const [user, own] of tested)
        expect(own.map(({ timestamp }) => timestamp).sort((left, right) => left - right)).toEqual(
          (byUser.get(user) ?? [])
            .map(({ timestamp }) => timestamp)
            .sort((left, right) => left - right)
            .slice(-3),
        );
    },
  );

  it('draws other ratings with another seed', async () => {
    const [first, again, other] = await Promise.all(
      [1, 1, 2].map((seed) => split(rows, (all) => all.leaveOut(1, { seed }))),
    );
    expect(again).toEqual(first);
    expect(other.test.length).toBe(first.test.length);
    expect(other.test).not.toEqual(first.test);
  });

  it('keeps repetitions of a pair together, and trains on a user who has no other', async () => {
    const twice = [
      ...rows,
      ...rows,
      { user: 900, item: 1, timestamp: 0 },
      { user: 900, item: 1, timestamp: 0 },
    ];
    const [once, both] = [
      await split(rows, (all) => all.leaveOut(2)),
      await split(twice, (all) => all.leaveOut(2)),
    ];
    expect(both.test).toEqual(once.test.flatMap((row) => [row, row]).sort());
    expect(both.train.filter((row) => row.includes('"user":900'))).toHaveLength(2);
  });

  it('refuses options that cannot be used', async () => {
    const all = session.from(batchesOf(rows));
    await expect(all.leaveOut(0)).rejects.toThrow('must be a whole number from 1 to 1,000, got 0');
    await expect(all.leaveOut(1, { by: 'time', seed: 3 })).rejects.toThrow(
      "seed cannot be used with by: 'time'",
    );
    await expect(all.leaveOut(1, { timestampCol: 'timestamp' })).rejects.toThrow(
      "timestampCol cannot be used with by: 'random'",
    );
    await expect(all.leaveOut(1, { by: 'user' as 'time' })).rejects.toThrow(
      'by must be random or time, got "user"',
    );
  });
});
