/** Rows of random columns get the numbers that a Map of their texts gives. FACTORFLOW_SEED draws others. */
import {
  Bool,
  type Data,
  DateMillisecond,
  Decimal,
  Dictionary,
  Field,
  FixedSizeBinary,
  Float16,
  Int32,
  Int64,
  Int8,
  LargeUtf8,
  List,
  makeData,
  TimestampNanosecond,
  Uint16,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { RowNumbers, UNKNOWN_ROW } from '../../../engine/keys/row-numbers.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { sampleSize } from '../../support/deep.ts';
import { type Cell, cellsOf, column } from '../expressions/evaluated.ts';
import { randomColumns } from '../expressions/random-rows.ts';

const seed = new CounterRandom(Number(process.env.FACTORFLOW_SEED ?? 1));
let draws = 0;
const random = () => seed.uniform(draws++);
const whole = (bound: number) => Math.floor(random() * bound);

interface Drawn {
  readonly data: Data;
  /** A text of each value, which is the same for equal values. */
  readonly texts: readonly string[];
}

const textOf = (cell: Cell) => {
  if (typeof cell === 'number') return cell === 0 ? '0' : String(cell);
  return typeof cell === 'string' ? `"${cell}"` : String(cell);
};
const ofCells = (data: Data): Drawn => ({ data, texts: cellsOf(data).map(textOf) });
const drawnColumns = randomColumns(random);
const nan = new Float64Array(Uint32Array.of(7, 0x7ff8_0001).buffer)[0];

/** Draws rows of a column by a name; `share`: the share of nulls. */
const kinds: Readonly<Record<string, (rows: number, share: number) => Drawn>> = {
  ...Object.fromEntries(
    Object.entries(drawnColumns).map(([name, { type, draw }]) => [
      name,
      (rows: number, share: number) =>
        ofCells(
          column(
            type,
            drawn(rows, () => (random() < share ? null : draw())),
          ),
        ),
    ]),
  ),
  zeros: (rows, share) => {
    const cells = drawn(rows, () => (random() < share ? null : [0, -0, 1, Number.NaN, nan][whole(5)]));
    const data = column('float64', cells);
    // NaNs with other bits than usual.
    (data.values as Float64Array).set(cells.map((cell) => Number(cell ?? nan)));
    return { data, texts: cells.map(textOf) };
  },
  far: (rows) =>
    ofCells(
      column(
        'int32',
        drawn(rows, () => Math.floor(random() * 2 ** 32) - 2 ** 31),
      ),
    ),
  near: (rows) =>
    ofCells(
      column(
        'int32',
        drawn(rows, () => 1000 - whole(50)),
      ),
    ),
  dictionary: (rows, share) => {
    const words = ['a', 'b', '', 'é', 'long '.repeat(60)];
    const cells = drawn(rows, () => (random() < share ? null : words[whole(5)]));
    return {
      data: vectorFromArray(cells, new Dictionary(new Utf8(), new Int8())).data[0],
      texts: cells.map(textOf),
    };
  },
  numberDictionary: (rows, share) => {
    const cells = drawn(rows, () => (random() < share ? null : BigInt(whole(4)) - 2n));
    return {
      data: vectorFromArray(cells, new Dictionary(new Int64(), new Uint16())).data[0],
      texts: cells.map(textOf),
    };
  },
  wideText: (rows) => {
    const cells = drawn(rows, () => ['x', 'yy', '💥'][whole(3)]);
    return { data: vectorFromArray(cells, new LargeUtf8()).data[0], texts: cells.map(textOf) };
  },
  decimal: (rows) => {
    const values = Uint32Array.from({ length: 4 * rows }, (_, i) => (i % 4 === 1 ? 3 : whole(2)));
    const texts = Array.from({ length: rows }, (_, i) => values.subarray(4 * i, 4 * i + 4).join());
    return {
      data: makeData({ type: new Decimal(4, 38, 128), length: rows, nullCount: 0, data: values }),
      texts,
    };
  },
  binary: (rows) => {
    const values = Uint8Array.from({ length: 8 * rows }, () => whole(1.1));
    const texts = Array.from({ length: rows }, (_, i) => values.subarray(8 * i, 8 * i + 8).join());
    return {
      data: makeData({ type: new FixedSizeBinary(8), length: rows, nullCount: 0, data: values }),
      texts,
    };
  },
  nanoseconds: (rows) => {
    const values = BigInt64Array.from({ length: rows }, () => BigInt(whole(3)) + 2n ** 60n);
    return {
      data: makeData({ type: new TimestampNanosecond(), length: rows, nullCount: 0, data: values }),
      texts: Array.from(values, String),
    };
  },
  milliseconds: (rows) => {
    const days = drawn(rows, () => new Date(86_400_000 * whole(3)));
    return { data: vectorFromArray(days, new DateMillisecond()).data[0], texts: days.map(String) };
  },
  half: (rows) => {
    const values = Uint16Array.from({ length: rows }, () => [0, 0x8000, 0x3c00, 0x7e00, 0xfe01][whole(5)]);
    const texts = Array.from(
      values,
      (bits) => ['0', '0', '1', 'NaN', 'NaN'][[0, 0x8000, 0x3c00, 0x7e00, 0xfe01].indexOf(bits)],
    );
    return { data: makeData({ type: new Float16(), length: rows, nullCount: 0, data: values }), texts };
  },
  flags: (rows) =>
    ofCells(
      vectorFromArray(
        drawn(rows, () => random() < 0.5),
        new Bool(),
      ).data[0],
    ),
  small: (rows) =>
    ofCells(
      vectorFromArray(
        drawn(rows, () => whole(5) - 2),
        new Int8(),
      ).data[0],
    ),
};

function drawn<T>(rows: number, draw: () => T): T[] {
  return Array.from({ length: rows }, draw);
}

const named = (columns: readonly Drawn[]) =>
  columns.map(({ data }, i) => ({ name: `c${i}`, type: data.type }));

/** The numbers of a Map, of some batches with some columns. */
class Expected {
  readonly known = new Map<string, number>();

  add(columns: readonly Drawn[], rows: number): number[] {
    return this.#each(columns, rows, (text) => {
      if (!this.known.has(text)) this.known.set(text, this.known.size);
    });
  }

  find(columns: readonly Drawn[], rows: number): number[] {
    return this.#each(columns, rows, () => {});
  }

  #each(columns: readonly Drawn[], rows: number, see: (text: string) => void): number[] {
    return drawn(rows, () => 0).map((_, row) => {
      const text = columns.map(({ texts }) => texts[row]).join('|');
      see(text);
      return this.known.get(text) ?? UNKNOWN_ROW;
    });
  }
}

/** Numbers batches of the columns by name, and finds them before and after. */
function compare(names: readonly string[], batches: number, shareOf: () => number): void {
  const draw = (rows: number) => names.map((name) => kinds[name](rows, shareOf()));
  const numbers = new RowNumbers(named(draw(1)));
  const expected = new Expected();
  for (let batch = 0; batch < batches; batch++) {
    const rows = 1 + whole(80);
    const columns = draw(rows);
    const cut = whole(rows);
    // A slice has its own rows alone.
    const slices = columns.map(({ data, texts }) => ({
      data: data.slice(cut, rows - cut),
      texts: texts.slice(cut),
    }));
    const data = slices.map((one) => one.data);
    expect([...numbers.find(data, rows - cut)], names.join()).toEqual(expected.find(slices, rows - cut));
    expect([...numbers.add(data, rows - cut)], names.join()).toEqual(expected.add(slices, rows - cut));
    expect(numbers.size).toBe(expected.known.size);
    expect([
      ...numbers.find(
        columns.map((one) => one.data),
        rows,
      ),
    ]).toEqual(expected.find(columns, rows));
  }
}

describe('numbers of rows', () => {
  it.each(Object.keys(kinds))('of a column of %s', (name) => {
    for (let i = 0; i < sampleSize(6); i++) compare([name], 6, () => 0);
    for (let i = 0; i < sampleSize(6); i++) compare([name], 6, () => (random() < 0.5 ? 0 : 0.3));
  });

  it('of several random columns', () => {
    const all = Object.keys(kinds);
    for (let i = 0; i < sampleSize(300); i++) {
      const names = drawn(2 + whole(3), () => all[whole(all.length)]);
      compare(names, 4, () => (random() < 0.6 ? 0 : 0.4));
    }
  });

  it('of 40 columns with nulls', () => {
    const names = drawn(40, () => 'c');
    compare(names, 3, () => 0.01);
  });

  it('of rows without columns, which are all equal', () => {
    const numbers = new RowNumbers([]);
    expect([...numbers.find([], 2)]).toEqual([UNKNOWN_ROW, UNKNOWN_ROW]);
    expect([numbers.size, [...numbers.add([], 0)], numbers.size]).toEqual([0, [], 0]);
    expect([[...numbers.add([], 3)], numbers.size, [...numbers.find([], 1)]]).toEqual([[0, 0, 0], 1, [0]]);
  });

  it('keep their order where the range of integers grows, and then is too large', () => {
    const numbers = new RowNumbers([{ name: 'c', type: new Int32() }]);
    const expected = new Map<number, number>();
    const batches = [
      Array.from({ length: 3000 }, (_, i) => i * 2),
      Array.from({ length: 9000 }, (_, i) => -i),
      Array.from({ length: 9000 }, (_, i) => i * 7),
      [2 ** 31 - 1, -(2 ** 31), 0, 5, 7],
      Array.from({ length: 20_000 }, (_, i) => i * 1001),
    ];
    for (const values of batches) {
      for (const value of values) if (!expected.has(value)) expected.set(value, expected.size);
      expect([...numbers.add([column('int32', values)], values.length)]).toEqual(
        values.map((value) => expected.get(value)),
      );
      const others = [3_000_001, 11, -8999, -9000, 2 ** 31 - 1, -(2 ** 31)];
      expect([...numbers.find([column('int32', others)], others.length)]).toEqual(
        others.map((value) => expected.get(value) ?? UNKNOWN_ROW),
      );
    }
    expect(numbers.size).toBe(expected.size);
  });

  it('of many rows of three words', () => {
    const numbers = new RowNumbers(['a', 'b', 'c'].map((name) => ({ name, type: new Int32() })));
    const rows = 20_000;
    const values = Array.from({ length: 3 }, () => drawn(rows, () => whole(60)));
    const expected = new Expected();
    const columns = values.map((own) => ({ data: column('int32', own), texts: own.map(String) }));
    expect([
      ...numbers.add(
        columns.map(({ data }) => data),
        rows,
      ),
    ]).toEqual(expected.add(columns, rows));
  });

  it('refuse lists, with the name of the column', () => {
    const type = new List(new Field('item', new Int32(), true));
    expect(() => new RowNumbers([{ name: 'tags', type }])).toThrow(
      'rows cannot be grouped by the column "tags" of type List<Int32>',
    );
  });
});
