/** A chain of transformations of rows with DuckDB's query, and one step more. */
import type { Dataset } from '../../../index.ts';
import type { Kind } from '../../engine/expressions/random-expressions.ts';

/** The column by which DuckDB keeps the order of rows. */
export const ORDER = 'row number';

/** Columns of a state of the chain, in order. */
export type KindsByName = Readonly<Record<string, Kind | 'wide'>>;

/** Rows after some transformations: as a data set is made from that of a table, and as a query. */
export interface RandomPlan {
  readonly text: string;
  readonly columns: KindsByName;
  readonly query: string;
  readonly make: (table: Dataset) => Dataset;
}

export const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(', ');

interface Change {
  readonly columns?: KindsByName;
  /** DuckDB's expressions of columns; others are those of before. */
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
