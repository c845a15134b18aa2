import { eliminate } from './als.ts';
import type { Triple } from '../ratings.ts';

/** Both sides' factors by id, with biases [x, β + μ, 1] and [θ, 1, γ]. */
export interface FactorsById {
  readonly users: ReadonlyMap<number, readonly number[]>;
  readonly items: ReadonlyMap<number, readonly number[]>;
}

type Side = keyof FactorsById;

export interface ReferenceRule {
  readonly biases: boolean;
  readonly lambda: number;
  readonly prior: number;
  /** Added for each factor, and for each bias of a side. */
  readonly offset?: number;
  readonly damping?: Readonly<Record<Side, number>>;
  /** Rows of the model without ratings, which are drawn to themselves. */
  readonly cold?: Readonly<Record<Side, readonly number[]>>;
  /** What attributes predict of rows that the model does not have. Default: the mean rows. */
  readonly priors?: Readonly<Record<Side, readonly number[]>>;
}

/** The start of an update in float64, rating by rating: see solveNewRows. */
export function referenceStart(
  model: FactorsById,
  ratings: readonly Triple[],
  {
    biases,
    lambda,
    prior,
    offset = 0,
    damping = { users: 0, items: 0 },
    cold = { users: [], items: [] },
    priors,
  }: ReferenceRule,
): FactorsById {
  const known = { users: new Map(model.users), items: new Map(model.items) };
  const meanRows = priors ?? { users: meanOf(model.users), items: meanOf(model.items) };
  const rank = meanRows.users.length - (biases ? 2 : 0);
  // The columns that are solved: the factors and the side's own bias.
  const free = (side: Side) => [
    ...Array(rank).keys(),
    ...(biases ? [side === 'users' ? rank : rank + 1] : []),
  ];
  const start = {
    users: new Map([...ratings.map(({ user }) => [user, meanRows.users] as const), ...model.users]),
    items: new Map([...ratings.map(({ item }) => [item, meanRows.items] as const), ...model.items]),
  };
  for (let round = 0; round < 2; round++) {
    for (const side of ['items', 'users'] as const) {
      const other = side === 'items' ? 'users' : 'items';
      const columns = free(side);
      const solved = new Map<number, readonly number[]>();
      for (const id of start[side].keys()) {
        if (model[side].has(id) && !cold[side].includes(id)) continue;
        const own = ratings
          .map((row) =>
            side === 'users'
              ? { id: row.user, other: row.item, rating: row.rating }
              : { id: row.item, other: row.user, rating: row.rating },
          )
          .filter((row) => row.id === id && known[other].has(row.other));
        if (own.length > 0)
          solved.set(
            id,
            solveRow(
              model[side].get(id) ?? meanRows[side],
              columns,
              own.map((row) => ({
                fixed: known[other].get(row.other) as readonly number[],
                rating: row.rating,
              })),
              columns.map(
                (column) => lambda * (own.length + prior) + (column < rank ? offset : damping[side]),
              ),
            ),
          );
      }
      for (const [id, row] of solved) {
        known[side].set(id, row);
        start[side].set(id, row);
      }
    }
  }
  return start;
}

function solveRow(
  mean: readonly number[],
  columns: readonly number[],
  ratings: readonly { readonly fixed: readonly number[]; readonly rating: number }[],
  shifts: readonly number[],
): number[] {
  const n = columns.length;
  const a = columns.map((_, i) =>
    Float64Array.from({ length: n + 1 }, (_value, j) => (i === j ? shifts[i] : 0)),
  );
  for (const { fixed, rating } of ratings) {
    const error = rating - mean.reduce((sum, value, k) => sum + value * fixed[k], 0);
    columns.forEach((column, i) => {
      columns.forEach((other, j) => (a[i][j] += fixed[column] * fixed[other]));
      a[i][n] += error * fixed[column];
    });
  }
  const d = eliminate(a, n);
  const row = [...mean];
  columns.forEach((column, i) => (row[column] += d[i]));
  return row;
}

function meanOf(rows: ReadonlyMap<number, readonly number[]>): number[] {
  const [first] = rows.values();
  return first.map((_, k) => [...rows.values()].reduce((sum, row) => sum + row[k], 0) / rows.size);
}
