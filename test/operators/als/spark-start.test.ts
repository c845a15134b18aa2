import { describe, expect, it } from 'vitest';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { type SparkStart, sparkRows, startOfSpark } from '../../../operators/als/start.ts';

const ids = Int32Array.of(-2147483648, -100, -3, 0, 5, 7, 12, 33, 34, 100, 2147483647);
const keys = { type: 'int32', values: ids } as const;

/** The users' factors of a model of PySpark 4.3.0 with maxIter 0, of ratings by these users. */
const documented: readonly {
  readonly start: SparkStart;
  readonly rank: number;
  readonly rows: Readonly<Record<string, readonly number[]>>;
}[] = [
  {
    start: { seed: 1n, userBlocks: 3 },
    rank: 3,
    rows: {
      '-2147483648': [-0.2979361, 0.850529, -0.4333988],
      '-3': [-0.0917349, -0.8160421, -0.5706664],
      '34': [0.7237048, -0.2700875, -0.6350623],
      '2147483647': [-0.6047424, 0.7519021, -0.2625448],
    },
  },
  {
    start: { seed: -5123456789012345678n, userBlocks: 1 },
    rank: 4,
    rows: {
      '-2147483648': [0.5291893, 0.2217649, -0.3746182, 0.7283132],
      '7': [0.2303225, -0.5389824, -0.3708011, -0.720386],
    },
  },
  {
    start: { seed: 1994790107n, userBlocks: 10 },
    rank: 5,
    rows: {
      '33': [0.6288145, -0.1147407, 0.4201497, 0.4978629, -0.4086975],
      '100': [-0.5824401, -0.0101465, 0.6362855, -0.441407, -0.2469031],
      '-100': [-0.038449, -0.6018327, -0.6415554, 0.0802582, 0.4672092],
    },
  },
];

describe("the start of Spark's ALS", () => {
  it.each(documented)('with $start is that of Spark', ({ start, rank, rows }) => {
    const drawn = sparkRows(keys, rank, start, 1) ?? new Float32Array(0);
    for (const [id, row] of Object.entries(rows)) {
      const at = ids.indexOf(Number(id)) * rank;
      row.forEach((value, k) => expect(drawn[at + k]).toBeCloseTo(value, 6));
    }
  });

  it('has rows of another norm for ratings in another unit', () => {
    const [start, rank] = [{ seed: 1n, userBlocks: 3 }, 3];
    const whole = sparkRows(keys, rank, start, 1) ?? new Float32Array(0);
    const params = { ...checkAlsParams({ rank, biases: true }) };
    const items = { type: 'int32', values: Int32Array.of(1, 2) } as const;
    const made = startOfSpark(start, { users: keys, items }, params, { unit: 16, room: 1 << 20 });
    expect([...(made?.users.values ?? [])]).toEqual(
      Array.from(whole, (value) => expect.closeTo(value / 4, 6) as number),
    );
    expect(made?.users.bias).toEqual(new Float32Array(ids.length));
    expect(made?.items).toEqual({ values: new Float32Array(2 * rank), bias: new Float32Array(2) });
  });

  it("is left out for ids that Spark's ALS does not have, and where memory is short", () => {
    const [start, rank] = [{ seed: 1n, userBlocks: 3 }, 3];
    const wide = { type: 'int64', halves: new Int32Array(4) } as const;
    expect(sparkRows(wide, rank, start, 1)).toBeUndefined();
    const bytes = 4 * rank * (2 * ids.length);
    const made = (room: number) =>
      startOfSpark(start, { users: keys, items: keys }, checkAlsParams({ rank }), { unit: 1, room });
    expect(made(bytes)?.users.values.length).toBe(ids.length * rank);
    expect(made(bytes - 1)).toBeUndefined();
  });
});
