import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  JoinedRows,
  readRows,
  type RowParts,
  storedParts,
  wholeRows,
  withOwn,
} from '../../../engine/row-parts.ts';

/** Rows as they are read, one by one. */
function slowRows({
  columns,
  parts,
  tail,
  scale = { values: 1, own: 1 },
  lead,
  order,
}: RowParts): number[][] {
  const width = columns - (tail ? 2 : 0);
  const [stride, first] = lead === undefined ? [width, 0] : [columns, 2];
  const inOrder = parts.flatMap(({ values, own }) =>
    Array.from({ length: values.length / stride }, (_, row) => {
      const read = Array.from(values.subarray(row * stride + first, (row + 1) * stride), (value) =>
        Math.fround(value * scale.values),
      );
      if (tail === undefined) return read;
      const number = Math.fround(
        (lead === undefined
          ? Math.fround((own?.[row] ?? 0) * scale.own)
          : scale.own * values[row * stride + lead]) + tail.add,
      );
      return [...read, ...(tail.oneFirst ? [1, number] : [number, 1])];
    }),
  );
  return order === undefined ? inOrder : Array.from(order, (place) => inOrder[place]);
}

const rowParts: fc.Arbitrary<RowParts> = fc
  .record({
    width: fc.integer({ min: 1, max: 5 }),
    lengths: fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 4 }),
    tail: fc.option(fc.record({ oneFirst: fc.boolean(), add: fc.constantFrom(0, 3.1) }), { nil: undefined }),
    scaled: fc.boolean(),
    lead: fc.constantFrom(undefined, 0 as const, 1 as const),
    mixed: fc.option(fc.nat(), { nil: undefined }),
  })
  .map(({ width, lengths, tail, scaled, lead: asked, mixed }) => {
    let next = 0;
    const numbers = (length: number) => Float32Array.from({ length }, () => Math.fround(0.1 * ++next));
    const lead = tail && asked;
    const rows = lengths.reduce((sum, count) => sum + count, 0);
    const drawn = (place: number) => (7919 * place + (mixed ?? 0)) % 101;
    return {
      rows,
      columns: width + (tail ? 2 : 0),
      parts: lengths.map((count) => ({
        values: numbers(count * (width + (lead === undefined ? 0 : 2))),
        ...(tail && lead === undefined && { own: numbers(count) }),
      })),
      ...(tail && { tail }),
      ...(scaled && { scale: { values: 2, own: 4 } }),
      ...(lead !== undefined && { lead }),
      ...(mixed !== undefined && {
        order: Uint32Array.from({ length: rows }, (_, place) => place).sort(
          (left, right) => drawn(left) - drawn(right),
        ),
      }),
    };
  });

it('rows of a matrix in parts are those of the whole, with their tails, from their places, for any range', () => {
  fc.assert(
    fc.property(rowParts, fc.nat(), fc.nat(), (matrix, a, b) => {
      const [from, to] = [a % (matrix.rows + 1), b % (matrix.rows + 1)].sort((left, right) => left - right);
      const expected = slowRows(matrix).map((row) => row.map(Math.fround));
      expect([...readRows(matrix, from, to)]).toEqual(expected.slice(from, to).flat());
      const joined = new JoinedRows(matrix);
      expect([...joined.whole]).toEqual(expected.flat());
      expect(joined.whole).toBe(joined.whole);
      expect([...readRows(joined.rows, from, to)]).toEqual(expected.slice(from, to).flat());
    }),
  );
});

it('a whole matrix is read without a copy', () => {
  const values = new Float32Array(12);
  expect(new JoinedRows(wholeRows(values, 3)).whole).toBe(values);
  expect(readRows(wholeRows(values, 3), 1, 2).buffer).toBe(values.buffer);
});

it('of files keep one part in memory, also where parts have been given other own numbers', () => {
  const reads: number[] = [];
  const given = storedParts(
    [0, 1].map((part) => ({
      rows: 2,
      read: () => {
        reads.push(part);
        return Float32Array.of(part, part);
      },
    })),
    [Float32Array.of(1, 2), Float32Array.of(3, 4)],
  );
  const kept = given.map((part) => withOwn(part, Float32Array.of(5, 6)));
  expect(kept.map(({ rows, own }) => [rows, ...(own ?? [])])).toEqual([
    [2, 5, 6],
    [2, 5, 6],
  ]);
  expect(kept[0].values).toBe(given[0].values);
  expect(kept[1].values).toEqual(Float32Array.of(1, 1));
  // The first part was given up for the second one.
  expect(given[0].values).toEqual(Float32Array.of(0, 0));
  expect(reads).toEqual([0, 1, 0]);
});
