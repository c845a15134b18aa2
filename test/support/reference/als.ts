import type { Triple } from '../ratings.ts';

/**
 * Plain ALS in float64, written independently of the engine: dense normal equations, Gaussian elimination, no
 * tricks.
 */
export interface ReferenceModel {
  readonly users: ReadonlyMap<number, Float64Array>;
  readonly items: ReadonlyMap<number, Float64Array>;
}

type Rows = Map<number, { other: number; rating: number }[]>;

export function referenceAls(
  ratings: readonly Triple[],
  start: ReadonlyMap<number, Float64Array>,
  lambda: number,
  iterations: number,
): ReferenceModel {
  const rank = start.values().next().value?.length ?? 0;
  const byUser = group(ratings, (row) => [row.user, row.item]);
  const byItem = group(ratings, (row) => [row.item, row.user]);
  let users: ReadonlyMap<number, Float64Array> = start;
  let items: ReadonlyMap<number, Float64Array> = new Map();
  for (let i = 0; i < iterations; i++) {
    items = solveSide(byItem, users, rank, lambda);
    users = solveSide(byUser, items, rank, lambda);
  }
  return { users, items };
}

export function referencePredict(model: ReferenceModel, user: number, item: number): number {
  const [x, theta] = [model.users.get(user), model.items.get(item)];
  if (!x || !theta) return Number.NaN;
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i] * theta[i];
  return sum;
}

function group(ratings: readonly Triple[], key: (row: Triple) => [number, number]): Rows {
  const rows: Rows = new Map();
  for (const rating of ratings) {
    const [own, other] = key(rating);
    const list = rows.get(own);
    if (list) list.push({ other, rating: rating.rating });
    else rows.set(own, [{ other, rating: rating.rating }]);
  }
  return rows;
}

function solveSide(
  rows: Rows,
  fixed: ReadonlyMap<number, Float64Array>,
  rank: number,
  lambda: number,
): Map<number, Float64Array> {
  const solved = new Map<number, Float64Array>();
  for (const [id, list] of rows) {
    const a = Array.from({ length: rank }, () => new Float64Array(rank + 1));
    for (const { other, rating } of list) {
      const theta = fixed.get(other) as Float64Array;
      for (let i = 0; i < rank; i++) {
        for (let j = 0; j < rank; j++) a[i][j] += theta[i] * theta[j];
        a[i][rank] += rating * theta[i];
      }
    }
    for (let i = 0; i < rank; i++) a[i][i] += lambda * list.length;
    solved.set(id, eliminate(a, rank));
  }
  return solved;
}

/** Solves the n equations of the rows of `a`, whose right sides are the last column, in place. */
export function eliminate(a: Float64Array[], n: number): Float64Array {
  for (let column = 0; column < n; column++) {
    for (let row = column + 1; row < n; row++) {
      const factor = a[row][column] / a[column][column];
      for (let j = column; j <= n; j++) a[row][j] -= factor * a[column][j];
    }
  }
  const x = new Float64Array(n);
  for (let row = n - 1; row >= 0; row--) {
    let sum = a[row][n];
    for (let j = row + 1; j < n; j++) sum -= a[row][j] * x[j];
    x[row] = sum / a[row][row];
  }
  return x;
}
