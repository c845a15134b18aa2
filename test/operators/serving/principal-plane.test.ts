/** The plane of largest variance. */
import { describe, expect, it } from 'vitest';
import { principalPlane } from '../../../operators/serving/principal-plane.ts';
import { testRandom } from '../../support/ratings.ts';

/** Rows in a plane through a point, with coordinates of two widths, and noise. */
function plantedPlane(seed: number, rows: number, features: number, noise: number) {
  const random = testRandom(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const vector = () => Array.from({ length: features }, normal);
  const unit = (a: readonly number[]) => a.map((value) => value / Math.hypot(...a));
  const first = unit(vector());
  const raw = vector();
  const along = raw.reduce((sum, value, k) => sum + value * first[k], 0);
  const second = unit(raw.map((value, k) => value - along * first[k]));
  const centre = vector();
  const coordinates = Array.from({ length: rows }, () => [5 * normal(), 2 * normal()] as const);
  const values = Float32Array.from(
    coordinates.flatMap(([x, y]) =>
      centre.map((c, k) => c + x * first[k] + y * second[k] + noise * normal()),
    ),
  );
  return { values, coordinates };
}

const all = (rows: number) => Array.from({ length: rows }, (_, row) => row);

/** The correlation of two lists. */
function correlation(a: readonly number[], b: readonly number[]): number {
  const mean = (list: readonly number[]) => list.reduce((sum, value) => sum + value, 0) / list.length;
  const [ma, mb] = [mean(a), mean(b)];
  const sum = (of: (k: number) => number) => a.reduce((total, _, k) => total + of(k), 0);
  return (
    sum((k) => (a[k] - ma) * (b[k] - mb)) /
    Math.sqrt(sum((k) => (a[k] - ma) ** 2) * sum((k) => (b[k] - mb) ** 2))
  );
}

describe('the principal plane', () => {
  it.each([
    [1, 200, 2],
    [2, 400, 8],
    [3, 300, 64],
  ])('recovers a planted plane (seed %d, %d rows, %d features)', (seed, rows, features) => {
    const { values, coordinates } = plantedPlane(seed, rows, features, 0.01);
    const { points, shares } = principalPlane({ values, stride: features, features, rows: all(rows) });
    for (const axis of [0, 1]) {
      const found = all(rows).map((row) => points[2 * row + axis]);
      expect(
        Math.abs(
          correlation(
            found,
            coordinates.map((point) => point[axis]),
          ),
        ),
      ).toBeGreaterThan(0.98);
    }
    expect(shares[0] + shares[1]).toBeGreaterThan(0.99);
    expect(shares[0]).toBeGreaterThan(shares[1]);
  });

  it('has zeros where there is no variance', () => {
    expect(
      principalPlane({ values: new Float32Array([2, 2, 2]), stride: 1, features: 1, rows: [0, 1, 2] }),
    ).toEqual({ points: new Float64Array(6), shares: [0, 0] });
    expect(principalPlane({ values: new Float32Array(), stride: 3, features: 3, rows: [] })).toEqual({
      points: new Float64Array(),
      shares: [0, 0],
    });
    const { points, shares } = principalPlane({
      values: new Float32Array([1, 2, 6]),
      stride: 1,
      features: 1,
      rows: [0, 1, 2],
    });
    expect([...points]).toEqual([-2, 0, -1, 0, 3, 0]);
    expect(shares).toEqual([1, 0]);
  });
});
