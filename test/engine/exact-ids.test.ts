import {
  type Data,
  DateDay,
  DateMillisecond,
  Decimal,
  FixedSizeBinary,
  Float32,
  Float64,
  Int32,
  makeData,
  Uint64,
} from 'apache-arrow';
import fc from 'fast-check';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { keysFromData, keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import { keyCount, keyText } from '../../engine/keys/key-column.ts';
import { DataError } from '../../index.ts';
import { duckdb } from '../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { cpuSession } from '../support/cpu-session.ts';

const folder = temporaryFolder();

/** The texts of a column's keys, and the reasons for refused ones, by row. */
function keysOf(data: Data): { readonly keys: string[]; readonly refused: Record<number, string> } {
  const refused: Record<number, string> = {};
  const keys = keysFromData(data, keyTypeOf(data.type, 'id'), (row, reason) => (refused[row] = reason));
  return {
    keys: Array.from({ length: keyCount(keys) }, (_, i) => (i in refused ? '-' : keyText(keys, i))),
    refused,
  };
}

const floats = (values: number[], single = false) =>
  single
    ? makeData({ type: new Float32(), length: values.length, data: Float32Array.from(values) })
    : makeData({ type: new Float64(), length: values.length, data: Float64Array.from(values) });
const unsigned = (values: bigint[]) =>
  makeData({ type: new Uint64(), length: values.length, data: BigUint64Array.from(values) });

function decimals(values: readonly bigint[], scale: number, bits = 128): Data {
  const words = Uint32Array.from(
    values.flatMap((value) =>
      Array.from({ length: bits / 32 }, (_, i) =>
        Number((BigInt.asUintN(bits, value) >> BigInt(32 * i)) & 0xffffffffn),
      ),
    ),
  );
  return makeData({ type: new Decimal(scale, 38, bits), length: values.length, data: words });
}

describe('ids of other types are kept exactly, or refused with their value', () => {
  test('unsigned integers of 64 bits', () => {
    const any = fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 20 });
    fc.assert(
      fc.property(
        any,
        (values) =>
          void expect(keysOf(unsigned(values)).keys).toEqual(
            values.map((value) => (value < 2n ** 63n ? String(value) : '-')),
          ),
      ),
    );
    expect(keysOf(unsigned([7n, 18446744073709551615n])).refused).toEqual({
      1: '18446744073709551615 is beyond int64',
    });
  });

  test('floats', () => {
    const any = fc.array(fc.oneof(fc.maxSafeInteger(), fc.double()), { maxLength: 20 });
    fc.assert(
      fc.property(
        any,
        (values) =>
          void expect(keysOf(floats(values)).keys).toEqual(
            values.map((value) => (Number.isSafeInteger(value) ? String(BigInt(value)) : '-')),
          ),
      ),
    );
    expect(keysOf(floats([1.5, Number.NaN, 2 ** 53, -0, 1e300])).refused).toEqual({
      0: '1.5 is not a whole number',
      1: 'NaN is not a whole number',
      2: '9007199254740992 is beyond 2^53, where a float does not hold every whole number',
      4: '1e+300 is beyond 2^53, where a float does not hold every whole number',
    });
    expect(keysOf(floats([2 ** 24 - 1, 2 ** 24], true)).keys).toEqual(['16777215', '-']);
  });

  test('decimals of any scale and width', () => {
    const any = fc.array(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), { maxLength: 10 });
    for (const bits of [128, 256]) {
      for (const scale of [0, 2, -3]) {
        fc.assert(
          fc.property(any, (values) => {
            const expected = values.map((value) => {
              const scaled = scale < 0 ? value * 1000n : value;
              const unit = scale > 0 ? 100n : 1n;
              return scaled % unit === 0n && BigInt.asIntN(64, scaled / unit) === scaled / unit
                ? String(scaled / unit)
                : '-';
            });
            expect(keysOf(decimals(values, scale, bits)).keys).toEqual(expected);
          }),
          { numRuns: 30 },
        );
      }
    }
    expect(keysOf(decimals([150n, -7n, 10n ** 22n, 4200n], 2)).refused).toEqual({
      0: '1.50 is not a whole number',
      1: '-0.07 is not a whole number',
      2: '100000000000000000000 is beyond int64',
    });
  });

  test('16 bytes are the text of a UUID', () => {
    const bytes = Uint8Array.from({ length: 32 }, (_, i) => (i * 37) & 255);
    expect(keysOf(makeData({ type: new FixedSizeBinary(16), length: 2, data: bytes })).keys).toEqual([
      '00254a6f-94b9-de03-284d-7297bce1062b',
      '50759abf-e409-2e53-789d-c2e70c31567b',
    ]);
    expect(() => keyTypeOf(new FixedSizeBinary(8), 'id')).toThrow(
      /ids must be whole numbers, text, dates or UUIDs/,
    );
  });

  test('dates are their ISO text', () => {
    const days = makeData({ type: new DateDay(), length: 2, data: Int32Array.of(19_666, -1) });
    expect(keysOf(days).keys).toEqual(['2023-11-05', '1969-12-31']);
    const millis = makeData({ type: new DateMillisecond(), length: 1, data: BigInt64Array.of(-1n) });
    expect(keysOf(millis).keys).toEqual(['1969-12-31']);
  });

  test('nulls are not refused here; without a listener the first value is an error', () => {
    const withNull = makeData({
      type: new Float64(),
      length: 2,
      data: Float64Array.of(0.5, 3),
      nullCount: 1,
      nullBitmap: Uint8Array.of(0b10),
    });
    expect(keysOf(withNull).refused).toEqual({});
    expect(() => keysFromData(floats([1.5]), 'int64')).toThrow(DataError);
    expect(keysOf(makeData({ type: new Int32(), length: 1, data: Int32Array.of(5) })).keys).toEqual(['5']);
  });
});

test('Parquet of DuckDB with such ids trains, and its bad rows are named', async () => {
  const duck = await duckdb();
  const file = join(folder, 'ids.parquet');
  const uuid = (i: string) => `('00000000-0000-4000-8000-' || lpad((${i})::VARCHAR, 12, '0'))::UUID`;
  await duck.run(
    `COPY (SELECT (i % 20)::UBIGINT AS a, (i % 7)::DECIMAL(20, 2) AS b, (i % 5)::DOUBLE AS c, ${uuid('i % 11')} AS d, (i % 10)::FLOAT AS rating FROM range(500) t(i)) TO '${file}' (FORMAT parquet)`,
  );
  const session = await cpuSession({ workers: 1 });
  const { ALS } = await import('../../index.ts');
  const counts: [string, string, number, number][] = [
    ['a', 'b', 20, 7],
    ['c', 'd', 5, 11],
    ['d', 'a', 11, 20],
  ];
  for (const [userCol, itemCol, users, items] of counts) {
    const model = await new ALS({ rank: 2, maxIter: 1, userCol, itemCol }).fit(session.read.parquet(file));
    expect([model.userCount, model.itemCount]).toEqual([users, items]);
    expect((await model.evaluate(session.read.parquet(file))).coldPairs).toBe(0);
  }
  const model = await new ALS({ rank: 2, maxIter: 1, userCol: 'd', itemCol: 'c' }).fit(
    session.read.parquet(file),
  );
  expect(model.userFactors.getChildAt(0)?.get(3)).toBe('00000000-0000-4000-8000-000000000003');

  const bad = join(folder, 'bad.parquet');
  await duck.run(
    `COPY (SELECT CASE WHEN i = 7 THEN 18446744073709551615 ELSE i END::UBIGINT AS user, CASE WHEN i = 9 THEN 0.5 ELSE i % 3 END::DOUBLE AS item, 1.0::FLOAT AS rating FROM range(20) t(i)) TO '${bad}' (FORMAT parquet)`,
  );
  const ratings = session.read.parquet(bad);
  await expect(new ALS({ rank: 2, maxIter: 1 }).fit(ratings)).rejects.toThrow(
    /2 bad rows, the first in .*bad\.parquet, row group 0, row \d: user 18446744073709551615 is beyond int64/,
  );
  const skipped = await new ALS({ rank: 2, maxIter: 1, onBadRows: 'skip' }).fit(ratings);
  expect([skipped.userCount, skipped.itemCount]).toEqual([18, 3]);
  await expect(skipped.predict(ratings).count()).rejects.toThrow(
    /18446744073709551615 is beyond int64, so it cannot be an id \(.*bad\.parquet, row group 0, row 8, column "user"\)/,
  );
});
