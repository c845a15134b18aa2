import type { Triple } from '../ratings.ts';
import { eliminate, type ReferenceModel } from './als.ts';

/** The parameters of a reference run; without `unobservedWeight` Spark's form. */
export interface ImplicitProblem {
  readonly regParam: number;
  readonly alpha: number;
  readonly unobservedWeight?: number;
  readonly regExponent?: number;
}

/** The weight c and the preference p of every pair, and the shift of every row, as dense matrices. */
interface Dense {
  readonly weight: number[][];
  /** Of the pair in b. */
  readonly target: number[][];
  readonly shifts: { readonly users: number[]; readonly items: number[] };
  readonly users: number[];
  readonly items: number[];
}

function densify(
  ratings: readonly Triple[],
  { regParam, alpha, unobservedWeight, regExponent = 1 }: ImplicitProblem,
): Dense {
  const [users, items] = [
    [...new Set(ratings.map(({ user }) => user))].sort((a, b) => a - b),
    [...new Set(ratings.map(({ item }) => item))].sort((a, b) => a - b),
  ];
  const least = unobservedWeight ?? 1;
  const weight = users.map(() => items.map(() => least));
  const target = users.map(() => items.map(() => 0));
  const positive = { users: users.map(() => 0), items: items.map(() => 0) };
  for (const { user, item, rating } of ratings) {
    const [u, v] = [users.indexOf(user), items.indexOf(item)];
    weight[u][v] += alpha * Math.abs(rating);
    if (rating <= 0) continue;
    target[u][v] += (unobservedWeight === undefined ? 1 : 0) + alpha * rating;
    positive.users[u]++;
    positive.items[v]++;
  }
  const shift = (counts: number[], columns: number) =>
    counts.map((count) => regParam * (count + (unobservedWeight ?? 0) * columns) ** regExponent);
  return {
    weight,
    target,
    users,
    items,
    shifts: { users: shift(positive.users, items.length), items: shift(positive.items, users.length) },
  };
}

/** Implicit ALS in float64 over every cell of the dense m x n matrix, written independently of the engine. */
export function referenceImplicit(
  ratings: readonly Triple[],
  start: ReadonlyMap<number, Float64Array>,
  problem: ImplicitProblem,
  iterations: number,
): ReferenceModel {
  const { weight, target, shifts, users, items } = densify(ratings, problem);
  let x = users.map((id) => start.get(id) as Float64Array);
  let theta: Float64Array[] = [];
  for (let i = 0; i < iterations; i++) {
    theta = items.map((_, v) =>
      solve(
        x,
        (u) => weight[u][v],
        (u) => target[u][v],
        shifts.items[v],
      ),
    );
    x = users.map((_, u) =>
      solve(
        theta,
        (v) => weight[u][v],
        (v) => target[u][v],
        shifts.users[u],
      ),
    );
  }
  return {
    users: new Map(users.map((id, u) => [id, x[u]])),
    items: new Map(items.map((id, v) => [id, theta[v]])),
  };
}

/** Σ c (p - s)² over all cells + Σ shift ‖row‖², by the definition; repeated pairs are not allowed. */
export function referenceImplicitLoss(
  ratings: readonly Triple[],
  model: ReferenceModel,
  problem: ImplicitProblem,
): number {
  const { shifts, users, items } = densify(ratings, problem);
  const { alpha, unobservedWeight } = problem;
  const rated = new Map(ratings.map(({ user, item, rating }) => [`${user} ${item}`, rating]));
  const norm = (row: Float64Array) => row.reduce((sum, value) => sum + value * value, 0);
  let loss = 0;
  users.forEach((user, u) => {
    const x = model.users.get(user) as Float64Array;
    loss += shifts.users[u] * norm(x);
    for (const item of items) {
      const s = (model.items.get(item) as Float64Array).reduce((sum, value, k) => sum + value * x[k], 0);
      const r = rated.get(`${user} ${item}`) ?? 0;
      const p = r > 0 ? 1 : 0;
      if (unobservedWeight === undefined) loss += (1 + alpha * Math.abs(r)) * (p - s) ** 2;
      else loss += alpha * Math.abs(r) * (p - s) ** 2 + unobservedWeight * s * s;
    }
  });
  items.forEach((item, v) => (loss += shifts.items[v] * norm(model.items.get(item) as Float64Array)));
  return loss;
}

function solve(
  fixed: readonly Float64Array[],
  weight: (at: number) => number,
  target: (at: number) => number,
  shift: number,
): Float64Array {
  const rank = fixed[0].length;
  const a = Array.from({ length: rank }, () => new Float64Array(rank + 1));
  fixed.forEach((theta, at) => {
    for (let i = 0; i < rank; i++) {
      for (let j = 0; j < rank; j++) a[i][j] += weight(at) * theta[i] * theta[j];
      a[i][rank] += target(at) * theta[i];
    }
  });
  for (let i = 0; i < rank; i++) a[i][i] += shift;
  return eliminate(a, rank);
}
