import { describe, expect, it } from 'vitest';
import { type AttributeMatrix, requireAttributes } from '../../../operators/attributes/attribute-matrix.ts';

/** Row 0 has the features 0 and 2, row 1 the constant alone. */
const good: AttributeMatrix = {
  rows: 2,
  features: 3,
  offsets: Int32Array.of(0, 2, 3),
  indices: Uint32Array.of(0, 2, 0),
  values: Float32Array.of(1, 0.5, 1),
};

describe('requireAttributes', () => {
  it('takes compressed rows that begin with the constant feature', () => {
    expect(() => requireAttributes('items', good, 2)).not.toThrow();
  });

  it.each<[string, Partial<AttributeMatrix>, string]>([
    ['another number of rows', { rows: 1 }, '1 rows for 2 items'],
    ['missing values', { values: Float32Array.of(1) }, '3 features and 1 values, where the rows need 3'],
    ['an empty row', { offsets: Int32Array.of(0, 0, 3) }, 'row 0 does not begin with the constant feature'],
    ['a constant that is not 1', { values: Float32Array.of(1, 0.5, 2) }, 'row 1 does not begin'],
    ['NaN', { values: Float32Array.of(1, NaN, 1) }, 'feature 2 of row 0 is NaN'],
    ['a feature twice', { indices: Uint32Array.of(0, 0, 0) }, 'feature 0 of row 0 is out of order'],
    ['a feature that is too large', { features: 2 }, 'feature 2 of row 0 is out of order, or not below 2'],
  ])('refuses %s', (_, wrong, text) => {
    expect(() => requireAttributes('items', { ...good, ...wrong }, 2)).toThrow(text);
  });
});
