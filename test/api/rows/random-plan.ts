/**
 * A chain of transformations of rows with the same query for DuckDB, and functions that add one more step.
 */
import type { Dataset } from '../../../index.ts';
import type { Kind } from '../../engine/expressions/random-expressions.ts';

/** The column by which DuckDB sorts, to keep the order of rows. */
export const ORDER = 'row number';

/** Columns of a state of the chain, in order. */
export type KindsByName = Readonly<Record<string, Kind | 'wide'>>;

/**
 * Rows after some transformations, in two forms: a function that makes the data set from a table's, and a
 * query.
 */
export interface RandomPlan {
  readonly text: string;
  readonly columns: KindsByName;
  readonly query: string;
  readonly make: (table: Dataset) => Dataset;
}

export const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(', ');

interface Change {
  readonly columns?: KindsByName;
  /** DuckDB's expressions for some columns; the other columns are unchanged. */
  readonly values?: Readonly<Record<string, string>>;
  readonly query?: string;
}

/** The plan with one step more. */
export function next(
  plan: RandomPlan,
  text: string,
  make: (rows: Dataset) => Dataset,
  { columns = plan.columns, values = {}, query }: Change,
): RandomPlan {
  const list = Object.keys(columns).map((name) => `${values[name] ?? `"${name}"`} AS "${name}"`);
  return {
    text: `${plan.text}\n  .${text}`,
    columns,
    query: query ?? `SELECT "${ORDER}", ${list.join(', ')} FROM (${plan.query})`,
    make: (table) => make(plan.make(table)),
  };
}
