/** Random chains of transformations of rows, with DuckDB's query for the same rows. */
import {
  minBy,
  maxBy,
  col,
  collectList,
  collectSet,
  type Column,
  count,
  countDistinct,
  type Dataset,
  denseRank,
  first,
  lag,
  last,
  lead,
  max,
  mean,
  median,
  min,
  quantile,
  rank,
  rowNumber,
  stddev,
  sum,
  type Window,
  type WindowFunction,
} from '../../../index.ts';
import type { SortOrder } from '../../../api/expressions.ts';
import { coalesce } from '../../../api/functions.ts';
import { expr } from '../../../api/parse-column.ts';
import {
  type Kind,
  kinds,
  RandomExpressions,
  type Twin,
} from '../../engine/expressions/random-expressions.ts';
import { type ColumnKind, namesByKind } from '../../engine/expressions/random-rows.ts';

/** The column by which DuckDB sorts, to keep the order of rows. */
export const ORDER = 'row number';

/** Columns of a state of the chain, in order. */
export type KindsByName = Readonly<Record<string, ColumnKind>>;

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

const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(', ');

interface Change {
  readonly columns?: KindsByName;
  /** DuckDB's expressions for some columns; the other columns are unchanged. */
  readonly values?: Readonly<Record<string, string>>;
  readonly query?: string;
}

/** The plan with one step more. */
function next(
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

type Step = (plan: RandomPlan) => RandomPlan;

/** Literals as columns, which have their own types in any expression. */
const literals: readonly (readonly [Kind, string, string])[] = [
  ['float64', '3.3', '3.3::DOUBLE'],
  ['float64', '0.1', '0.1::DOUBLE'],
  ['int', '5', '5::BIGINT'],
  ['decimal', 'cast(0.9 as decimal(3,2))', '0.9::DECIMAL(3,2)'],
  ['text', "'12'", "'12'"],
  ['bool', 'true', 'true'],
];

export class RandomPlans {
  readonly #random: () => number;
  #names = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** A chain of some steps from a table. */
  draw(table: RandomPlan, steps: number): RandomPlan {
    let plan = table;
    for (let n = 0; n < steps; n++) plan = this.#step()(plan);
    return plan;
  }

  #step(): Step {
    return this.#pick<Step>([
      (plan) => this.#filter(plan),
      (plan) => this.#filter(plan),
      (plan) => this.#withColumn(plan),
      (plan) => this.#withColumn(plan),
      (plan) => this.#literal(plan),
      (plan) => this.#select(plan),
      (plan) => this.#union(plan),
      (plan) => this.#limit(plan),
      (plan) => this.#orderBy(plan),
      (plan) => this.#limit(this.#orderBy(plan)),
      (plan) => this.#split(plan),
      (plan) => this.#explode(plan),
      (plan) => this.#dropNulls(plan),
      (plan) => wideStep(plan, this.#tools),
      (plan) => wideStep(plan, this.#tools),
    ]);
  }

  get #tools(): WideTools {
    return {
      pick: (choices) => this.#pick(choices),
      some: (names) => this.#some(names, 0.3),
      condition: (plan) => this.#expression(plan, 'bool'),
      name: () => `n${this.#names++}`,
      key: (name) => this.#key(col(name), name, `"${name}"`),
    };
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)];
  }

  /** Some of the names, in an order of their own, at least one. */
  #some(names: readonly string[], share = 0.6): string[] {
    const kept = names.filter(() => this.#random() < share);
    const chosen = kept.length > 0 ? kept : [this.#pick(names)];
    return this.#random() < 0.5 ? chosen.toReversed() : chosen;
  }

  #expression(plan: RandomPlan, kind: Kind): Twin {
    const source = new RandomExpressions(this.#random, namesByKind(plan.columns));
    return source.draw(kind, 1 + Math.floor(this.#random() * 3));
  }

  #filter(plan: RandomPlan): RandomPlan {
    const [own, other] = this.#expression(plan, 'bool');
    return next(plan, `filter(${own})`, (rows) => rows.filter(expr(own)), {
      query: `SELECT * FROM (${plan.query}) WHERE ${other}`,
    });
  }

  #withColumn(plan: RandomPlan): RandomPlan {
    const kind = this.#pick(kinds);
    return this.#computed(plan, kind, this.#expression(plan, kind));
  }

  /** A column of lists of texts, which other steps carry along. */
  #split(plan: RandomPlan): RandomPlan {
    const [own, other] = this.#expression(plan, 'text');
    const separator = this.#pick(['a', '1', '']);
    const list: Twin = [`split(${own}, '${separator}')`, `string_split(${other}, '${separator}')`];
    return this.#computed(plan, 'list', list);
  }

  /** Elements in the order of their lists; `keepEmpty`: a null for a list that is null. */
  #explode(plan: RandomPlan): RandomPlan {
    const name = Object.keys(plan.columns).find((column) => plan.columns[column] === 'list');
    if (name === undefined) return this.#split(plan);
    const keepEmpty = this.#random() < 0.5;
    const columns = { ...plan.columns, [name]: 'text' } as const;
    const list = keepEmpty ? `coalesce(nullif("${name}", []), [NULL])` : `"${name}"`;
    const query = `SELECT row_number() OVER (ORDER BY "${ORDER}", place) AS "${ORDER}", ${quoted(Object.keys(columns))}
      FROM (SELECT * REPLACE (unnest(${list}) AS "${name}"), generate_subscripts(${list}, 1) AS place FROM (${plan.query}))`;
    return next(plan, `explode(${name}, ${keepEmpty})`, (rows) => rows.explode(name, { keepEmpty }), {
      columns,
      query,
    });
  }

  #dropNulls(plan: RandomPlan): RandomPlan {
    const names = this.#some(Object.keys(plan.columns), 0.2);
    const query = `SELECT * FROM (${plan.query}) WHERE ${names.map((name) => `"${name}" IS NOT NULL`).join(' AND ')}`;
    return next(plan, `dropNulls(${names.join()})`, (rows) => rows.dropNulls(...names), { query });
  }

  #literal(plan: RandomPlan): RandomPlan {
    const [kind, own, other] = this.#pick(literals);
    return this.#computed(plan, kind, [own, other]);
  }

  #computed(plan: RandomPlan, kind: ColumnKind, [own, other]: Twin): RandomPlan {
    const names = Object.keys(plan.columns);
    const name = this.#random() < 0.3 ? this.#pick(names) : `n${this.#names++}`;
    return next(plan, `withColumn(${name}, ${own})`, (rows) => rows.withColumn(name, expr(own)), {
      columns: { ...plan.columns, [name]: kind },
      values: { [name]: other },
    });
  }

  #select(plan: RandomPlan): RandomPlan {
    const names = this.#some(Object.keys(plan.columns));
    const kind = this.#pick(kinds);
    const [own, other] = this.#expression(plan, kind);
    const added = this.#random() < 0.4 ? `n${this.#names++}` : undefined;
    const columns = Object.fromEntries(names.map((name) => [name, plan.columns[name]]));
    return next(
      plan,
      `select(${names.join(', ')}${added === undefined ? '' : `, ${own} as ${added}`})`,
      (rows) => rows.select(...names, ...(added === undefined ? [] : [expr(own).as(added)])),
      added === undefined
        ? { columns }
        : { columns: { ...columns, [added]: kind }, values: { [added]: other } },
    );
  }

  /** The rows, followed by some of them with their columns in another order. */
  #union(plan: RandomPlan): RandomPlan {
    const [own, other] = this.#expression(plan, 'bool');
    const names = Object.keys(plan.columns).toReversed();
    const columns = quoted(Object.keys(plan.columns));
    return next(
      plan,
      `union(filter(${own}))`,
      (rows) => rows.union(rows.filter(expr(own)).select(...names)),
      {
        query: `SELECT row_number() OVER (ORDER BY part, "${ORDER}") AS "${ORDER}", ${columns} FROM (
          SELECT 1 AS part, * FROM (${plan.query}) UNION ALL
          SELECT 2 AS part, * FROM (${plan.query}) WHERE ${other})`,
      },
    );
  }

  #limit(plan: RandomPlan): RandomPlan {
    const rows = this.#pick([0, 1, 7, 40, 150, 1000]);
    return next(plan, `limit(${rows})`, (table) => table.limit(rows), {
      query: `SELECT * FROM (${plan.query}) ORDER BY "${ORDER}" LIMIT ${rows}`,
    });
  }

  /** Sorts by columns and an expression; rows with equal values keep their order. */
  #orderBy(plan: RandomPlan): RandomPlan {
    const sortable = exactNames(plan);
    const names = sortable.length > 0 ? this.#some(sortable, 0.2) : [];
    const keys = names.map((name) => this.#key(col(name), name, `"${name}"`));
    const [own, other] = this.#expression(plan, this.#pick(kinds));
    if (keys.length === 0 || this.#random() < 0.3) keys.unshift(this.#key(expr(own), own, other));
    const columns = quoted(Object.keys(plan.columns));
    const order = keys.map(({ sql }) => sql).join(', ');
    return next(
      plan,
      `orderBy(${keys.map(({ text }) => text).join(', ')})`,
      (rows) => rows.orderBy(...keys.map(({ key }) => key)),
      {
        query: `SELECT row_number() OVER (ORDER BY ${order}, "${ORDER}") AS "${ORDER}", ${columns}
          FROM (${plan.query})`,
      },
    );
  }

  #key(column: Column, text: string, sql: string): RandomKey {
    const descending = this.#random() < 0.5;
    const nulls = this.#pick(['first', 'last', undefined] as const);
    const plain = descending ? column.desc() : column.asc();
    const placed = nulls === 'first' ? plain.nullsFirst() : nulls === 'last' ? plain.nullsLast() : plain;
    const direction = descending ? 'DESC' : 'ASC';
    return {
      text: `${text} ${direction} ${nulls ?? ''}`,
      sql: `${sql} ${direction} NULLS ${nulls ?? (descending ? 'LAST' : 'FIRST')}`,
      key: placed,
    };
  }
}

/** A key of `orderBy` and DuckDB's. */
interface RandomKey {
  readonly text: string;
  readonly sql: string;
  readonly key: SortOrder;
}

/** The tools for drawing a random operator. */
interface WideTools {
  readonly pick: <T>(choices: readonly T[]) => T;
  /** Some of the names, at least one. */
  readonly some: (names: readonly string[]) => string[];
  readonly condition: (plan: RandomPlan) => Twin;
  /** A name that is new. */
  readonly name: () => string;
  /** A key of `orderBy` by a column. */
  readonly key: (name: string) => RandomKey;
}

/** Adds an operator over all rows, followed by a sort of its result by all columns. */
function wideStep(plan: RandomPlan, tools: WideTools): RandomPlan {
  const exact = exactNames(plan);
  if (exact.length === 0) return plan;
  const keys = tools.some(exact);
  const step = tools.pick([
    () => groupByOf(plan, keys, tools, exact),
    () => measuresOf(plan, keys, tools, exact),
    () => explodeOf(plan, keys, tools, exact),
    () => joinAcrossOf(selected(plan, exact), tools),
    () => sorted(unionAcrossOf(selected(plan, exact), tools)),
    () => sorted(distinctOf(selected(plan, keys))),
    () => sorted(dropDuplicatesOf(selected(plan, exact), keys)),
    () => joinOf(selected(plan, exact), keys, tools),
    () => windowOf(plan, keys, tools, exact),
    () => windowOf(plan, keys, tools, exact),
    () => pivotOf(plan, keys, tools, exact),
    () => crossJoinOf(selected(plan, exact), keys[0], tools),
    () => asOfJoinOf(selected(plan, exact), keys, tools),
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
  const by = tools.pick(values);
  const kept = keys.slice(0, tools.pick([0, keys.length, keys.length]));
  const [rows, distinct, least, early, latest, head, tail] = Array.from({ length: 7 }, () => tools.name());
  const aggregates = [
    count().as(rows),
    countDistinct(of).as(distinct),
    min(of).as(least),
    minBy(of, by).as(early),
    maxBy(of, by).as(latest),
    first(of).as(head),
    last(of).as(tail),
  ];
  const own = Object.fromEntries(kept.map((name) => [name, plan.columns[name]]));
  const kind = plan.columns[of];
  const columns = {
    ...own,
    [rows]: 'int',
    [distinct]: 'int',
    [least]: kind,
    [early]: kind,
    [latest]: kind,
    [head]: kind,
    [tail]: kind,
  } as const;
  const list = `count(*) AS ${rows}, count(DISTINCT "${of}") AS ${distinct}, min("${of}") AS ${least},
    arg_min("${of}", "${by}" ORDER BY "${ORDER}") AS ${early}, arg_max("${of}", "${by}" ORDER BY "${ORDER}") AS ${latest},
    first("${of}" ORDER BY "${ORDER}") AS ${head}, last("${of}" ORDER BY "${ORDER}") AS ${tail}`;
  const query =
    kept.length === 0
      ? `SELECT ${list} FROM (${plan.query})`
      : `SELECT ${quoted(kept)}, ${list} FROM (${plan.query}) GROUP BY ${quoted(kept)}`;
  const make = (table: Dataset) => table.groupBy(...kept).agg(...aggregates);
  return sorted(next(plan, `groupBy(${kept.join(', ')}).agg(${of} by ${by})`, make, { columns, query }));
}

/** Aggregates of numbers. */
function measuresOf(
  plan: RandomPlan,
  keys: readonly string[],
  tools: WideTools,
  exact: readonly string[],
): RandomPlan {
  const numbers = exact.filter((name) => ['int', 'decimal'].includes(plan.columns[name]));
  if (numbers.length === 0) return plan;
  const of = tools.pick(numbers);
  const kind = plan.columns[of];
  const own = kind === 'decimal' ? kind : 'float64';
  const [total, average, middle, part, spread] = Array.from({ length: 5 }, () => tools.name());
  // DuckDB interpolates floats as a (1 - p) + b p, which may differ in the last digit.
  const p = tools.pick(kind === 'decimal' ? [0, 0.3, 0.5, 0.99, 1] : [0, 0.5, 1]);
  const columns = {
    ...Object.fromEntries(keys.map((name) => [name, plan.columns[name]])),
    [total]: kind,
    [average]: 'float64',
    [middle]: own,
    [part]: own,
    [spread]: 'float32',
  } as const;
  // DuckDB interpolates between digits beyond float64's in another way.
  const value = kind === 'decimal' ? short(of) : `"${of}"`;
  const list = `sum("${of}") AS ${total}, avg("${of}") AS ${average}, median(${value}) AS ${middle},
    quantile_cont(${value}, ${p}) AS ${part}, stddev("${of}")::FLOAT AS ${spread}`;
  const query = `SELECT ${quoted(keys)}, ${list} FROM (${plan.query}) GROUP BY ${quoted(keys)}`;
  const aggregates = [
    sum(of).as(total),
    mean(of).as(average),
    median(expr(value)).as(middle),
    quantile(expr(value), p).as(part),
    stddev(of).as(spread),
  ];
  // The last digits of deviations depend on the order of sums.
  const rounded = col(spread).cast('float32');
  const make = (table: Dataset) =>
    table
      .groupBy(...keys)
      .agg(...aggregates)
      .withColumn(spread, rounded);
  return sorted(next(plan, `groupBy(${keys.join(', ')}).agg(sum of ${of})`, make, { columns, query }));
}

/** A row for each value, or distinct value, of each group. */
function explodeOf(
  plan: RandomPlan,
  keys: readonly string[],
  tools: WideTools,
  exact: readonly string[],
): RandomPlan {
  const of = tools.pick(exact);
  const name = tools.name();
  const [collect, distinct] = tools.pick([
    [collectList, ''],
    [collectSet, 'DISTINCT'],
  ] as const);
  const keepEmpty = tools.pick([true, false]);
  const columns = {
    ...Object.fromEntries(keys.map((key) => [key, plan.columns[key]])),
    [name]: plan.columns[of],
  };
  const list = `list(${distinct} "${of}") FILTER ("${of}" IS NOT NULL)`;
  const lists = `SELECT ${quoted(keys)}, ${keepEmpty ? `coalesce(${list}, [NULL])` : list} AS ${name}
    FROM (${plan.query}) GROUP BY ${quoted(keys)}`;
  const query = `SELECT ${quoted(keys)}, unnest(${name}) AS ${name} FROM (${lists})`;
  const make = (table: Dataset) =>
    table
      .groupBy(...keys)
      .agg(collect(of).as(name))
      .explode(name, { keepEmpty });
  return sorted(
    next(plan, `explode(${distinct} ${of} by ${keys.join()}, ${keepEmpty})`, make, { columns, query }),
  );
}

/** With counts of the same values of another type of decimals. */
function joinAcrossOf(plan: RandomPlan, tools: WideTools): RandomPlan {
  const keys = Object.keys(plan.columns).filter((name) => plan.columns[name] === 'decimal');
  if (keys.length === 0) return plan;
  const key = tools.pick(keys);
  const how = tools.pick(['inner', 'left', 'semi', 'anti'] as const);
  const [rows, own, other] = Array.from({ length: 3 }, () => tools.name());
  const isFilter = how === 'semi' || how === 'anti';
  const to = tools.pick(['decimal(20,3)', 'bigint']);
  const cast = `try_cast("${key}" as ${to})`;
  const columns = {
    ...plan.columns,
    [own]: 'decimal' as const,
    ...(isFilter ? {} : { [rows]: 'int' as const }),
  };
  const counts = `SELECT ${cast} AS ${other}, count(*) AS ${rows} FROM (${plan.query}) GROUP BY ${cast}`;
  const query = `SELECT ${isFilter ? 'l.*' : `l.*, r.${rows}`} FROM (SELECT *, ${short(key)} AS ${own} FROM (${plan.query})) l
    ${how.toUpperCase()} JOIN (${counts}) r ON l.${own} = r.${other}`;
  const make = (table: Dataset) => {
    const counted = table.select(expr(cast).as(other)).groupBy(other).agg(count().as(rows));
    const left = table.withColumn(own, expr(short(key)));
    return left.join(counted, { left: own, right: other }, how);
  };
  // The key has a type that has the values of both.
  const joined = next(plan, `join(${own} = ${cast}, ${how})`, make, { columns, query });
  return sorted(
    next(joined, `withColumn(${own}, ${short(own)})`, (table) => table.withColumn(own, expr(short(own))), {
      values: { [own]: short(own) },
    }),
  );
}

const short = (name: string) => `try_cast("${name}" as decimal(12, 2))`;

/** The rows, followed by those with other types of decimals. */
function unionAcrossOf(plan: RandomPlan, tools: WideTools): RandomPlan {
  const names = Object.keys(plan.columns).filter((name) => plan.columns[name] === 'decimal');
  if (names.length === 0) return plan;
  const [name, type] = [tools.pick(names), tools.pick(['decimal(20,3)', 'bigint'])];
  const [first, second] = [short(name), `try_cast("${name}" as ${type})`];
  const rest = Object.keys(plan.columns).filter((one) => one !== name);
  const select = (value: string) =>
    `SELECT ${quoted([...rest])}${rest.length > 0 ? ', ' : ''}${value} AS "${name}" FROM (${plan.query})`;
  const make = (table: Dataset) =>
    table.withColumn(name, expr(first)).union(table.withColumn(name, expr(second)));
  const columns = Object.fromEntries([...rest, name].map((one) => [one, plan.columns[one]]));
  const query = `${select(first)} UNION ALL ${select(second)}`;
  return next(plan, `union(${second})`, make, { columns, query });
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
      .filter(expr(own))
      .groupBy(...keys)
      .agg(count().as(rows));
    return table.join(counted, keys, how);
  };
  return sorted(
    next(plan, `join(counts of filter(${own}), ${keys.join(', ')}, ${how})`, make, { columns, query }),
  );
}

const pivotValues = {
  bool: [true, false, null],
  text: ['a', '', null],
  int: [1, 5, null],
  decimal: [0, 12.34, null],
} as const;

function pivotOf(
  plan: RandomPlan,
  keys: readonly string[],
  tools: WideTools,
  exact: readonly string[],
): RandomPlan {
  const by = exact.find((name) => plan.columns[name] in pivotValues && !keys.includes(name));
  if (by === undefined) return plan;
  const values = pivotValues[plan.columns[by] as keyof typeof pivotValues];
  const of = tools.pick(exact);
  const [rows, most, different] = [tools.name(), tools.name(), tools.name()];
  const own = Object.fromEntries(keys.map((name) => [name, plan.columns[name]]));
  const columns: Record<string, ColumnKind> = { ...own };
  const renamed: Column[] = [];
  const list = values.flatMap((value, i) => {
    const [first, second, third] = [rows, most, different].map((name) => `${name}_${i}`);
    columns[first] = 'int';
    columns[second] = plan.columns[of];
    columns[third] = 'int';
    renamed.push(
      col(`${value}_${rows}`).as(first),
      col(`${value}_${most}`).as(second),
      coalesce(col(`${value}_${different}`), 0).as(third),
    );
    const sql = typeof value === 'string' ? `'${value}'` : `${value}`;
    const filter = `FILTER ("${by}" IS NOT DISTINCT FROM ${sql})`;
    return [
      `nullif(count(*) ${filter}, 0) AS ${first}`,
      `max("${of}") ${filter} AS ${second}`,
      `count(DISTINCT "${of}") ${filter} AS ${third}`,
    ];
  });
  const query = `SELECT ${quoted(keys)}, ${list.join()} FROM (${plan.query}) GROUP BY ${quoted(keys)}`;
  const aggregates = [count().as(rows), max(of).as(most), countDistinct(of).as(different)];
  const make = (table: Dataset) =>
    table
      .groupBy(...keys)
      .pivot(by, values)
      .agg(...aggregates)
      .select(...keys, ...renamed);
  return sorted(next(plan, `groupBy(${keys.join()}).pivot(${by}).agg(${of})`, make, { columns, query }));
}

/** With the first distinct values of a column. */
function crossJoinOf(plan: RandomPlan, of: string, tools: WideTools): RandomPlan {
  const name = tools.name();
  const columns = { ...plan.columns, [name]: plan.columns[of] };
  const other = `SELECT DISTINCT "${of}" AS ${name} FROM (${plan.query}) ORDER BY 1 ASC NULLS FIRST LIMIT 3`;
  const query = `SELECT * FROM (${plan.query}), (${other})`;
  const make = (table: Dataset) =>
    table.crossJoin(table.select(col(of).as(name)).distinct().orderBy(name).limit(3));
  return sorted(next(plan, `crossJoin(${of})`, make, { columns, query }));
}

/** With the number of rows of the latest time of the same keys. */
function asOfJoinOf(plan: RandomPlan, keys: readonly string[], tools: WideTools): RandomPlan {
  const times = Object.keys(plan.columns).filter(
    (name) =>
      !keys.includes(name) &&
      ['int', 'wide', 'decimal', 'date', 'timestamp', 'zoned'].includes(plan.columns[name]),
  );
  if (times.length === 0) return plan;
  const [at, how, strict] = [
    tools.pick(times),
    tools.pick(['inner', 'left'] as const),
    tools.pick([true, false]),
  ];
  const [own, other] = tools.condition(plan);
  const rows = tools.name();
  const columns = { ...plan.columns, [rows]: 'int' as const };
  const counts = `SELECT ${quoted([...keys, at])}, count(*) AS ${rows} FROM (${plan.query}) WHERE ${other}
    AND "${at}" IS NOT NULL GROUP BY ${quoted([...keys, at])}`;
  const on = [...keys.map((key) => `l."${key}" = r."${key}"`), `l."${at}" ${strict ? '>' : '>='} r."${at}"`];
  const query = `SELECT l.*, r.${rows} FROM (${plan.query}) l ASOF ${how === 'left' ? 'LEFT' : ''} JOIN (${counts}) r
    ON ${on.join(' AND ')}`;
  const make = (table: Dataset) => {
    const counted = table
      .filter(expr(own))
      .groupBy(...keys, at)
      .agg(count().as(rows));
    return table.asOfJoin(counted, { on: keys, at, how, strict });
  };
  const text = `asOfJoin(counts of filter(${own}), ${keys.join()}, ${at}, ${how}${strict ? ', strict' : ''})`;
  return sorted(next(plan, text, make, { columns, query }));
}

/** A function over a window, DuckDB's, and the kind of its result. */
interface RandomCall {
  readonly own: Pick<WindowFunction, 'over'>;
  readonly sql: string;
  readonly kind: ColumnKind;
  /** The orders and frames for which DuckDB's value is the only one; `peers`: rows of equal keys are not ordered. */
  readonly frames: readonly ('none' | 'peers' | 'rows' | 'range')[];
}

/**
 * Adds a window function. Where the order of all rows counts, all exact columns end it, and only these are
 * kept, so that rows of equal keys are identical.
 */
function windowOf(
  plan: RandomPlan,
  keys: readonly string[],
  tools: WideTools,
  exact: readonly string[],
): RandomPlan {
  const { pick } = tools;
  const partitionBy = pick([keys, keys.slice(0, 1), []]);
  const { own, sql, kind, frames } = pick(windowCalls(plan.columns, exact, tools));
  const how = pick(frames);
  const keyed = exactNames(plan).filter((name) => how !== 'range' || plan.columns[name] in distances);
  if (keyed.length === 0) return plan;
  const name = pick(keyed);
  const rest = exact.map((key) => ({ key: col(key).asc(), sql: `"${key}" NULLS FIRST`, text: key }));
  const isWhole = how === 'none' || how === 'rows';
  const order = [tools.key(name), ...(isWhole ? rest : how === 'peers' ? pick([[], rest.slice(0, 1)]) : [])];
  const ends = pick(how === 'peers' ? windowFrames.slice(0, 4) : windowFrames);
  const scale = how === 'range' ? distances[plan.columns[name]] : distances.int;
  const frame = how === 'none' ? undefined : how === 'rows' ? 'rows' : 'range';
  const window: Window = {
    partitionBy,
    orderBy: order.map(({ key }) => key),
    ...(frame && { [frame]: ends.map((end) => end * scale.unit) }),
  };
  const [from, to] = ends.map((end) => endOf(end, scale.sql));
  const over = [
    partitionBy.length > 0 ? `PARTITION BY ${quoted(partitionBy)} ` : '',
    `ORDER BY ${order.map((key) => key.sql).join(', ')}`,
    frame ? ` ${frame} BETWEEN ${from} AND ${to}` : '',
  ].join('');
  const added = tools.name();
  const columns = Object.fromEntries(exact.map((column) => [column, plan.columns[column]]));
  const cast = kind === 'int' ? '::BIGINT' : '';
  const query = `SELECT ${quoted(exact)}, (${sql} OVER (${over}))${cast} AS ${added} FROM (${plan.query})`;
  const make = (rows: Dataset) => rows.withColumn(added, own.over(window)).select(...exact, added);
  const windowed = next(plan, `withColumn(${added}, ${sql} over ${over})`, make, {
    columns: { ...columns, [added]: kind },
    query,
  });
  // A condition on a rank removes rows before the exchange.
  const condition = `${added} ${pick(['<', '<=', '='])} ${pick([1, 2, 5])}`;
  const first = next(windowed, `filter(${condition})`, (rows) => rows.filter(expr(condition)), {
    query: `SELECT * FROM (${windowed.query}) WHERE ${condition}`,
  });
  return sorted(kind === 'int' && pick([true, false]) ? first : windowed);
}

/** Distances of the keys of a range: those of a frame's numbers, and DuckDB's. */
const distances: Readonly<Record<string, { readonly unit: number; readonly sql: (n: number) => string }>> = {
  int: { unit: 1, sql: String },
  float32: { unit: 0.5, sql: (n) => `${n / 2}` },
  float64: { unit: 0.5, sql: (n) => `${n / 2}` },
  decimal: { unit: 0.5, sql: (n) => `${n / 2}` },
  date: { unit: 86_400_000, sql: (n) => `INTERVAL ${n} DAY` },
  timestamp: { unit: 86_400_000, sql: (n) => `INTERVAL ${n} DAY` },
};

/** The first ones have no distances. */
const windowFrames = [
  [-Infinity, 0],
  [-Infinity, Infinity],
  [0, 0],
  [0, Infinity],
  [-2, 1],
  [-3, -1],
  [1, 3],
  [-1, Infinity],
  [-Infinity, -2],
] as const;

function endOf(end: number, distance: (n: number) => string): string {
  if (end === 0) return 'CURRENT ROW';
  const side = end < 0 ? 'PRECEDING' : 'FOLLOWING';
  return `${Number.isFinite(end) ? distance(Math.abs(end)) : 'UNBOUNDED'} ${side}`;
}

function windowCalls(columns: KindsByName, exact: readonly string[], { pick }: WideTools): RandomCall[] {
  const value = pick(exact);
  const [of, sqlOf] = [columns[value], `"${value}"`];
  const every = ['peers', 'rows', 'range'] as const;
  const alike = exact.filter((name) => columns[name] === of);
  const numbers = exact.filter((name) => columns[name] === 'int');
  const offset = numbers.length > 0 && pick([true, false]) ? pick(numbers) : pick([1, 1, 2, 0, -1]);
  const distance = typeof offset === 'string' ? col(offset) : offset;
  // DuckDB casts decimals to the type of the value, where ours have a type of both.
  const outside = pick([undefined, of === 'decimal' ? value : pick(alike)]);
  const ignoreNulls = pick([true, false]);
  const options = { ignoreNulls, ...(outside && { default: col(outside) }) };
  const args = [
    sqlOf,
    typeof offset === 'string' ? `"${offset}"` : offset,
    ...(outside ? [`"${outside}"`] : []),
  ].join(', ');
  const shifted = `(${args}${ignoreNulls ? ' IGNORE NULLS' : ''})`;
  const calls: RandomCall[] = [
    { own: rowNumber(), sql: 'row_number()', kind: 'int', frames: ['none'] },
    { own: rank(), sql: 'rank()', kind: 'int', frames: ['none', 'peers'] },
    { own: denseRank(), sql: 'dense_rank()', kind: 'int', frames: ['none', 'peers'] },
    { own: lag(value, distance, options), sql: `lag${shifted}`, kind: of, frames: ['none'] },
    { own: lead(value, distance, options), sql: `lead${shifted}`, kind: of, frames: ['none'] },
    { own: first(value), sql: `first(${sqlOf})`, kind: of, frames: ['none', 'rows'] },
    { own: last(value), sql: `last(${sqlOf})`, kind: of, frames: ['none', 'rows'] },
    { own: min(value), sql: `min(${sqlOf})`, kind: of, frames: every },
    { own: max(value), sql: `max(${sqlOf})`, kind: of, frames: every },
    { own: count(value), sql: `count(${sqlOf})`, kind: 'int', frames: every },
    { own: count(), sql: 'count(*)', kind: 'int', frames: every },
  ];
  if (of !== 'int' && of !== 'decimal') return calls;
  return [
    ...calls,
    { own: sum(value), sql: `sum(${sqlOf})`, kind: of, frames: every },
    {
      own: mean(value),
      sql: of === 'int' ? `avg(${sqlOf}::DOUBLE)` : `avg(${sqlOf})`,
      kind: 'float64',
      frames: every,
    },
  ];
}

/** Columns that may be keys. */
const exactNames = ({ columns }: RandomPlan) =>
  Object.keys(columns).filter((name) => columns[name] !== 'list');

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
