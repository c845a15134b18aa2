import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keysToVector } from '../../engine/keys/arrow-keys.ts';
import { keysOfIds } from '../../engine/keys/find-id.ts';
import {
  type KeyColumn,
  keyCount,
  keyText,
  type KeyType,
  takeKeys,
  widen,
  UNKNOWN_KEY,
  mergeKeys,
} from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { codedKeys, makeKeyTable } from '../../engine/keys/tables/make-key-table.ts';
import { RatingChunk, type RatingRows } from '../../operators/ratings/reading/rating-chunk.ts';

const ids: Record<KeyType, fc.Arbitrary<number | bigint | string>> = {
  int32: fc.oneof(fc.integer({ min: -5, max: 5 }), fc.integer()),
  int64: fc.oneof(
    fc.bigInt({ min: -5n, max: 5n }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.bigInt({ min: 2n ** 32n - 3n, max: 2n ** 32n + 3n }),
  ),
  utf8: fc.oneof(fc.constantFrom('', 'a', 'ab', 'b', 'é', '💥'), fc.string({ unit: 'grapheme' })),
};

/** utf8 sorts by bytes, which is by code point; JavaScript's own order is by UTF-16 units. */
function ascending(type: KeyType, keys: readonly (number | bigint | string)[]): string[] {
  const distinct = [...new Set(keys.map(String))];
  if (type !== 'utf8')
    return distinct
      .map(BigInt)
      .sort((l, r) => (l < r ? -1 : l > r ? 1 : 0))
      .map(String);
  return distinct.sort((l, r) => Buffer.compare(Buffer.from(l), Buffer.from(r)));
}

function sorted(values: readonly (number | bigint | string)[], type: KeyType): KeyColumn {
  const table = makeKeyTable(type);
  table.add(keysOfIds(values, type), new Uint32Array(values.length));
  return takeKeys(table.keys(), table.ascending());
}

describe.each(['int32', 'int64', 'utf8'] as const)('a table of %s keys', (type) => {
  const columns = fc.array(ids[type], { maxLength: 400 });

  it('numbers distinct keys in the order of first appearance', () => {
    fc.assert(
      fc.property(columns, (values) => {
        const column = keysOfIds(values, type);
        const table = makeKeyTable(type);
        const codes = new Uint32Array(values.length);
        table.add(column, codes);
        const expected = new Map<string, number>();
        values.forEach((value) => expected.has(String(value)) || expected.set(String(value), expected.size));
        expect([...codes]).toEqual(values.map((value) => expected.get(String(value))));
        expect(table.size).toBe(expected.size);
      }),
      { numRuns: 60 },
    );
  });

  it('gives its keys in ascending order', () => {
    fc.assert(
      fc.property(columns, (values) => {
        const table = makeKeyTable(type);
        table.add(keysOfIds(values, type), new Uint32Array(values.length));
        const sorted = takeKeys(table.keys(), table.ascending());
        expect(Array.from({ length: keyCount(sorted) }, (_, i) => keyText(sorted, i))).toEqual(
          ascending(type, values),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('finds added keys and no others', () => {
    fc.assert(
      fc.property(columns, columns, (known, asked) => {
        const table = makeKeyTable(type);
        table.add(keysOfIds(known, type), new Uint32Array(known.length));
        const codes = new Uint32Array(asked.length);
        table.find(keysOfIds(asked, type), codes);
        asked.forEach((key, i) =>
          expect(codes[i] !== UNKNOWN_KEY).toBe(known.map(String).includes(String(key))),
        );
      }),
      { numRuns: 40 },
    );
  });

  it('merges two ascending columns to one, with the positions of the keys of each', () => {
    fc.assert(
      fc.property(columns, columns, (one, other) => {
        const [left, right] = [one, other].map((values) => sorted(values, type));
        const { keys, first, second } = mergeKeys(left, right);
        const textsOf = (column: KeyColumn) =>
          Array.from({ length: keyCount(column) }, (_, i) => keyText(column, i));
        const merged = textsOf(keys);
        expect(merged).toEqual(ascending(type, [...one, ...other]));
        expect(Array.from(first, (place) => merged[place])).toEqual(textsOf(left));
        expect(Array.from(second, (place) => merged[place])).toEqual(textsOf(right));
      }),
      { numRuns: 60 },
    );
  });

  it('passes through Arrow unchanged', () => {
    const column = keysOfIds(type === 'utf8' ? ['x', '', 'zä'] : [3, -1, 2], type);
    const vector = keysToVector(column);
    expect(Array.from({ length: 3 }, (_, i) => String(vector.get(i)))).toEqual(
      Array.from({ length: 3 }, (_, i) => keyText(column, i)),
    );
  });
});

describe('long texts', () => {
  it('that differ in one byte anywhere have numbers of their own, found again', () => {
    const texts = [127, 128, 129, 130, 131, 200].flatMap((length) => [
      'x'.repeat(length),
      ...Array.from({ length }, (_, at) => `${'x'.repeat(at)}y${'x'.repeat(length - at - 1)}`),
    ]);
    const column = keysOfIds([...texts, ...texts.toReversed()], 'utf8');
    const table = makeKeyTable('utf8');
    const codes = new Uint32Array(2 * texts.length);
    table.add(column, codes);
    const numbers = Array.from(texts.keys());
    expect([...codes]).toEqual([...numbers, ...numbers.toReversed()]);
    const found = new Uint32Array(2);
    table.find(keysOfIds([`${'x'.repeat(198)}yy`, texts.at(-1) as string], 'utf8'), found);
    expect([...found]).toEqual([UNKNOWN_KEY, texts.length - 1]);
  });

  it('are numbered as they come as they are from a whole chunk', () => {
    const ids = keysOfIds(
      Array.from({ length: 900 }, (_, row) => 'long '.repeat(row % 40) + String(row % 7)),
      'utf8',
    );
    const rows: RatingRows = {
      users: ids,
      items: ids,
      ratings: new Float32Array(900),
      timestamps: undefined,
    };
    const numbered = (numbersText: boolean) => {
      const chunk = new RatingChunk(
        { rows: 500, bytes: 1 << 26 },
        { users: 'utf8', items: 'utf8', timestamps: false },
        numbersText,
      );
      const first = chunk.append(rows, 0);
      const number = () =>
        chunk.numbered({ users: new Uint32Array(chunk.rows), items: new Uint32Array(chunk.rows) }, codedKeys);
      const before = number();
      chunk.rows = 0;
      chunk.append(rows, first);
      return [before, number()];
    };
    expect(numbered(true)).toEqual(numbered(false));
  });
});

describe('a lookup', () => {
  it.each([[[5, 3, 9, -4]], [[5, 1_000_000_000, -2_000_000_000]]])(
    'finds int32 keys close together and far apart: %j',
    (keys) => {
      const asked = [...keys, 4, -5, 10, 2 ** 31 - 1, -(2 ** 31)];
      const found = new KeyLookup(keysOfIds(keys, 'int32')).positionsOf(keysOfIds(asked, 'int32'));
      expect([...found]).toEqual(asked.map((key) => (keys.includes(key) ? keys.indexOf(key) : UNKNOWN_KEY)));
    },
  );
});

describe('keys of different widths', () => {
  it('match by value', () => {
    const lookup = new KeyLookup(keysOfIds([-7, 0, 5], 'int32'));
    expect([...lookup.positionsOf(keysOfIds([5n, 2n ** 32n + 5n, -7n], 'int64'))]).toEqual([
      2,
      UNKNOWN_KEY,
      0,
    ]);
    const wide = new KeyLookup(keysOfIds([-7n, 2n ** 40n], 'int64'));
    expect([...wide.positionsOf(keysOfIds([-7, 8], 'int32'))]).toEqual([0, UNKNOWN_KEY]);
  });

  it('hash alike', () => {
    const narrow: KeyColumn = keysOfIds([-7, 0, 123456], 'int32');
    expect(keyHashes(narrow)).toEqual(keyHashes(widen(narrow)));
  });

  it('are refused as text where the id is not an integer of that width', () => {
    expect(() => keysOfIds(['12x'], 'int32')).toThrow(/"12x" is not an id: ids are int32/);
    expect(() => keysOfIds([2 ** 31], 'int32')).toThrow(/int32/);
  });
});
