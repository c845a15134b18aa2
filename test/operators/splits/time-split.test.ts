import {
  Field,
  Int32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  TimestampMicrosecond,
  type TypeMap,
} from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { type Dataset, type ProgressEvent } from '../../../index.ts';
import {
  digitOf,
  numberOf,
  orderedWords,
  prefixOf,
  TimeSplit,
} from '../../../operators/splits/time-split.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { batchOf, shuffled, testRandom } from '../../support/ratings.ts';

const session = await cpuSession();

/** Batches {user, item, timestamp} with the given times. */
function timedBatches(
  times: readonly (number | bigint | null)[],
  type: 'float64' | 'int64' = 'float64',
  size = 97,
): RecordBatch[] {
  const batches: RecordBatch[] = [];
  for (let from = 0; from < times.length; from += size) {
    const part = times.slice(from, from + size);
    const ids = part.map((_, i) => from + i);
    const timestamp = { type, values: part };
    batches.push(
      batchOf({ user: { type: 'int32', values: ids }, item: { type: 'int32', values: ids }, timestamp }),
    );
  }
  return batches;
}

async function timesIn(part: Dataset): Promise<number[]> {
  const times: number[] = [];
  for await (const batch of part)
    for (const value of batch.getChild('timestamp') ?? []) times.push(Number(value));
  return times.sort((left, right) => left - right);
}

/** Splits in a session of its own, and gives the times of each part, ascending. */
async function split(batches: RecordBatch[], ...args: Parameters<Dataset['timeSplit']>): Promise<number[][]> {
  return await Promise.all((await session.from(batches).timeSplit(...args)).map(timesIn));
}

const random = testRandom(5);
const seconds = Array.from({ length: 3000 }, () => 1_000_000_000 + Math.floor(random() * 2000));

describe('time-split', () => {
  it('cuts at the time of the row at its share, the times of a cut to the later side', async () => {
    const sorted = [...seconds].sort((left, right) => left - right);
    const [train, test] = await split(timedBatches(seconds), [0.8, 0.2]);
    expect(train).toEqual(sorted.filter((time) => time < sorted[2400]));
    expect(test).toEqual(sorted.filter((time) => time >= sorted[2400]));
    expect(train.length).toBeGreaterThan(2390);
  });

  it('is exact for any numbers: fractions, negative ones, nanoseconds', async () => {
    const scales = [
      (u: number) => (u - 0.5) * 1e-3,
      (u: number) => -Math.exp(60 * u - 30),
      (u: number) => 1.6e18 + Math.floor(u * 1e6) * 1024,
    ];
    for (const scale of scales) {
      const times = seconds.map(() => scale(random()));
      const sorted = [...times].sort((left, right) => left - right);
      const parts = await split(timedBatches(times), [1, 1, 1]);
      expect(parts).toEqual([sorted.slice(0, 1000), sorted.slice(1000, 2000), sorted.slice(2000)]);
    }
  });

  it("doesn't depend on the order of rows, and keeps every column of a row", async () => {
    expect(await split(timedBatches(shuffled(seconds, 3)), [3, 1])).toEqual(
      await split(timedBatches(seconds), [3, 1]),
    );
    const [, test] = await session.from(timedBatches(seconds)).timeSplit([3, 1]);
    for await (const batch of test)
      for (const row of batch.toArray()) expect(row.timestamp).toBe(seconds[row.user]);
  });

  it('reads times twice where they are whole seconds, three times otherwise, and tells where it cut', async () => {
    const passes = async (times: number[]) => {
      const batches = timedBatches(times);
      let count = 0;
      const counted = {
        *[Symbol.iterator]() {
          count++;
          yield* batches;
        },
      };
      const events: ProgressEvent[] = [];
      await session
        .from(counted, batches[0].schema, { replayable: true })
        .timeSplit([1, 1], { onEvent: (event) => void events.push(event) });
      return { count, note: events.find((event) => event.type === 'note')?.text };
    };
    expect(await passes([5, 6, 7, 8])).toEqual({
      count: 2,
      note: 'the time split cuts 4 rows at timestamp 7',
    });
    expect((await passes([0.1, 0.2, 0.3, 0.4])).count).toBe(3);
  });

  it('splits at a given time, in the unit of the column or as a Date', async () => {
    expect(await split(timedBatches([1n, 2n, 3n, 3n, 9n], 'int64'), { before: 3 })).toEqual([
      [1, 2],
      [3, 3, 9],
    ]);
    const moments = ['2024-01-01', '2024-06-01', '2025-01-01'].map((day) => BigInt(Date.parse(day)) * 1000n);
    const schema = new Schema([
      new Field('user', new Int32(), false),
      new Field('timestamp', new TimestampMicrosecond(), false),
    ]);
    const children = [
      makeData({ type: new Int32(), length: 3, data: Int32Array.of(1, 2, 3) }),
      makeData({ type: new TimestampMicrosecond(), length: 3, data: BigInt64Array.from(moments) }),
    ];
    const batch = new RecordBatch(
      schema,
      makeData({ type: new Struct<TypeMap>(schema.fields), length: 3, nullCount: 0, children }),
    );
    const parts = await split([batch], { before: new Date('2024-06-01') });
    expect(parts.map((part) => part.length)).toEqual([1, 2]);
    await expect(split(timedBatches([1, 2]), { before: new Date() })).rejects.toThrow(
      'the column "timestamp" holds Float64, whose unit is unknown',
    );
    await expect(split(timedBatches([1, 2]), { before: Number.NaN })).rejects.toThrow(
      'must be a finite number or a Date, got NaN',
    );
  });

  it('says which part would be empty', async () => {
    await expect(split(timedBatches([5, 5, 5, 5, 6]), [1, 1])).rejects.toThrow(
      'part 1 of the time split would be empty: too many of the 5 rows have the time 5',
    );
    await expect(split(timedBatches([1, 5, 5, 5, 5, 6]), [1, 1, 1])).rejects.toThrow(
      'part 2 of the time split would be empty',
    );
    await expect(
      split(
        timedBatches([1]).map((batch) => batch.slice(0, 0)),
        [1, 1],
      ),
    ).rejects.toThrow('there are no rows to split');
  });

  it('names a row without a time, a column that is missing or holds no numbers, and weights that are not positive', async () => {
    await expect(split(timedBatches([1n, 2n, null], 'int64'), [1, 1])).rejects.toThrow(
      /a row has no time: timestamp is null \(row 3, column "timestamp"\)/,
    );
    await expect(split(timedBatches([1, Number.NaN]), { before: 2 })).rejects.toThrow('timestamp is NaN');
    await expect(split(timedBatches([1, 2]), [1, 1], { timestampCol: 'when' })).rejects.toThrow(
      'there is no column "when"; there are: user, item, timestamp. Name the column of times',
    );
    const text = batchOf({
      user: { type: 'int32', values: [1] },
      timestamp: { type: 'utf8', values: ['x'] },
    });
    await expect(split([text], [1, 1])).rejects.toThrow('timestamp "x" is not a time such as 2024-05-31');
    await expect(split(timedBatches([1, 2]), [1, -1])).rejects.toThrow('split weights must be positive');
    expect(() => new TimeSplit('t', { from: 3, to: 3 })).toThrow(
      'a range of times must end after it begins, got 3 to 3',
    );
    expect(() => new TimeSplit('t', { to: Number.NaN })).toThrow('must be numbers, got NaN');
  });

  it('by weights refuses rows that can be read only once', async () => {
    const once = session.from(timedBatches([1, 2])[Symbol.iterator]());
    await expect(once.timeSplit([1, 1])).rejects.toThrow(
      'a time split by weights reads the rows more than once',
    );
  });
});

describe('the digits of times', () => {
  it('ascend with the numbers and give them back', () => {
    const numbers = Float64Array.of(
      -1e300,
      -2,
      -1e-300,
      0,
      5e-324,
      1,
      1.0000000000000002,
      1_700_000_000,
      1e300,
      Number.POSITIVE_INFINITY,
    );
    const words = orderedWords(numbers);
    const keys = Array.from(numbers, (_, i) => (BigInt(words[2 * i + 1]) << 32n) | BigInt(words[2 * i]));
    expect([...keys].sort((left, right) => (left < right ? -1 : 1))).toEqual(keys);
    expect(
      Array.from(numbers, (_, i) => numberOf(prefixOf(words, 2 * i, 2), digitOf(words, 2 * i, 2))),
    ).toEqual([...numbers]);
  });
});
