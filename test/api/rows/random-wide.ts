/** Random operators over all rows, with DuckDB's query. */
import { count, countDistinct, type Dataset, min } from '../../../index.ts';
import { parseColumn } from '../../../api/parse-column.ts';
import type { Kind, Twin } from '../../engine/expressions/random-expressions.ts';
import { next, ORDER, quoted, type RandomPlan } from './random-plan.ts';

/** The tools for drawing a random operator. */
export interface WideTools {
  readonly pick: <T>(choices: readonly T[]) => T;
  /** Some of the names, at least one. */
  readonly some: (names: readonly string[]) => string[];
  readonly condition: (plan: RandomPlan) => Twin;
  /** A name that is new. */
  readonly name: () => string;
}

/** Adds an operator over all rows, followed by a sort of its result by all columns. */
export function wideStep(plan: RandomPlan, tools: WideTools): RandomPlan {
  const exact = Object.keys(plan.columns).filter((name) => isExact(plan.columns[name]));
  if (exact.length === 0) return plan;
  const keys = tools.some(exact);
  const step = tools.pick([
    () => groupByOf(plan, keys, tools, exact),
    () => sorted(distinctOf(selected(plan, keys))),
    () => sorted(dropDuplicatesOf(selected(plan, exact), keys)),
    () => joinOf(selected(plan, exact), keys, tools),
  ]);
  return step();
}

function groupByOf(
  plan: RandomPlan,
  keys: readonly string[],
  tools: WideTools,
  values: readonly string[],
): RandomPlan {
  const of = tools.pick(values);
  const [rows, distinct, least] = Array.from({ length: 3 }, () => tools.name());
  const aggregates = [count().as(rows), countDistinct(of).as(distinct), min(of).as(least)];
  const own = Object.fromEntries(keys.map((name) => [name, plan.columns[name]]));
  const columns = { ...own, [rows]: 'int', [distinct]: 'int', [least]: plan.columns[of] } as const;
  const list = `count(*) AS ${rows}, count(DISTINCT "${of}") AS ${distinct}, min("${of}") AS ${least}`;
  const query = `SELECT ${quoted(keys)}, ${list} FROM (${plan.query}) GROUP BY ${quoted(keys)}`;
  const make = (table: Dataset) => table.groupBy(...keys).agg(...aggregates);
  return sorted(next(plan, `groupBy(${keys.join(', ')}).agg(${of})`, make, { columns, query }));
}

/** With the number of some of the rows by the same keys. */
function joinOf(plan: RandomPlan, keys: readonly string[], tools: WideTools): RandomPlan {
  const [own, other] = tools.condition(plan);
  const how = tools.pick(['inner', 'left', 'right', 'full', 'semi', 'anti'] as const);
  const rows = tools.name();
  const isFilter = how === 'semi' || how === 'anti';
  const columns = isFilter ? plan.columns : { ...plan.columns, [rows]: 'int' as const };
  const counts = `SELECT ${quoted(keys)}, count(*) AS ${rows} FROM (${plan.query}) WHERE ${other} GROUP BY ${quoted(keys)}`;
  const query = `SELECT ${quoted(Object.keys(columns))}
      FROM (${plan.query}) ${how.toUpperCase()} JOIN (${counts}) USING (${quoted(keys)})`;
  const make = (table: Dataset) => {
    const counted = table
      .filter(parseColumn(own))
      .groupBy(...keys)
      .agg(count().as(rows));
    return table.join(counted, keys, how);
  };
  return sorted(
    next(plan, `join(counts of filter(${own}), ${keys.join(', ')}, ${how})`, make, { columns, query }),
  );
}

/** Values that are the same bits wherever they are equal. */
function isExact(kind: Kind | 'wide'): boolean {
  return !['float32', 'float64'].includes(kind);
}

function selected(plan: RandomPlan, names: readonly string[]): RandomPlan {
  const columns = Object.fromEntries(names.map((name) => [name, plan.columns[name]]));
  return next(plan, `select(${names.join(', ')})`, (rows) => rows.select(...names), { columns });
}

function distinctOf(plan: RandomPlan): RandomPlan {
  const query = `SELECT DISTINCT ${quoted(Object.keys(plan.columns))} FROM (${plan.query})`;
  return next(plan, 'distinct()', (rows) => rows.distinct(), { query });
}

function dropDuplicatesOf(plan: RandomPlan, keys: readonly string[]): RandomPlan {
  const query = `SELECT * FROM (${plan.query})
    QUALIFY row_number() OVER (PARTITION BY ${quoted(keys)} ORDER BY "${ORDER}") = 1`;
  return next(plan, `dropDuplicates(${keys.join(', ')})`, (rows) => rows.dropDuplicates(...keys), { query });
}

/** Sorts by all columns, so that rows with equal keys are identical. */
function sorted(plan: RandomPlan): RandomPlan {
  const names = Object.keys(plan.columns);
  const order = names.map((name) => `"${name}" ASC NULLS FIRST`).join(', ');
  const query = `SELECT row_number() OVER (ORDER BY ${order}) AS "${ORDER}", ${quoted(names)} FROM (${plan.query})`;
  return next(plan, 'orderBy(all columns)', (rows) => rows.orderBy(...names), { query });
}
