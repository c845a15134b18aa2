import fc from 'fast-check';
import { expect, it } from 'vitest';
import { JoinedRows, readRows, type RowParts, wholeRows } from '../../engine/row-parts.ts';

/** Rows as they are read, one by one. */
function slowRows({ columns, parts, tail, scale = { values: 1, own: 1 } }: RowParts): number[][] {
  const width = columns - (tail ? 2 : 0);
  return parts.flatMap(({ values, own }) =>
    Array.from({ length: values.length / width }, (_, row) => {
      const read = Array.from(values.subarray(row * width, (row + 1) * width), (value) => Math.fround(value * scale.values));
      if (tail === undefined) return read;
      const number = Math.fround(Math.fround((own?.[row] ?? 0) * scale.own) + tail.add);
      return [...read, ...(tail.oneFirst ? [1, number] : [number, 1])];
    }),
  );
}

const rowParts: fc.Arbitrary<RowParts> = fc
  .record({ width: fc.integer({ min: 1, max: 5 }), lengths: fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 4 }), tail: fc.option(fc.record({ oneFirst: fc.boolean(), add: fc.constantFrom(0, 3.1) }), { nil: undefined }), scaled: fc.boolean() })
  .map(({ width, lengths, tail, scaled }) => {
    let next = 0;
    const numbers = (length: number) => Float32Array.from({ length }, () => Math.fround(0.1 * ++next));
    return {
      rows: lengths.reduce((sum, rows) => sum + rows, 0),
      columns: width + (tail ? 2 : 0),
      parts: lengths.map((rows) => ({ values: numbers(rows * width), ...(tail && { own: numbers(rows) }) })),
      ...(tail && { tail }),
      ...(scaled && { scale: { values: 2, own: 4 } }),
    };
  });

it('rows of a matrix in parts are those of the whole, with their tails, for any range', () => {
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
