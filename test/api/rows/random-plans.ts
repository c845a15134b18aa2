/** Random chains of transformations of rows, with DuckDB's query for the same rows. */
import { col, type Column } from '../../../index.ts';
import type { SortOrder } from '../../../api/expressions.ts';
import { parseColumn } from '../../../api/parse-column.ts';
import type { ValueType } from '../../../engine/expressions/types.ts';
import {
  type Kind,
  kinds,
  RandomExpressions,
  type Twin,
} from '../../engine/expressions/random-expressions.ts';
import { namesByKind } from '../../engine/expressions/random-rows.ts';
import { next, ORDER, quoted, type RandomPlan } from './random-plan.ts';
import { wideStep, type WideTools } from './random-wide.ts';

type Step = (plan: RandomPlan) => RandomPlan;

/**
 * The types to which a column can be cast, with nulls for values that cannot be converted, and DuckDB's
 * expression.
 */
const casts: Readonly<Partial<Record<Kind | 'wide', readonly (readonly [ValueType, Kind, string])[]>>> = {
  bool: [['int64', 'int', 'cast(x as bigint)']],
  int: [
    ['float64', 'float64', 'cast(x as double)'],
    ['utf8', 'text', 'cast(x as varchar)'],
    ['int8', 'int', 'try_cast(x as tinyint)'],
  ],
  float32: [['float64', 'float64', 'cast(x as double)']],
  float64: [['int64', 'int', 'try_cast(trunc(x) as bigint)']],
  text: [
    ['int64', 'int', 'try_cast(x as bigint)'],
    ['float64', 'float64', 'try_cast(x as double)'],
  ],
  date: [
    ['timestamp', 'timestamp', 'cast(x as timestamp)'],
    ['utf8', 'text', 'cast(x as varchar)'],
  ],
  timestamp: [['date', 'date', 'cast(x as date)']],
};

const fills: Readonly<Partial<Record<Kind | 'wide', readonly [string | number | boolean, string]>>> = {
  bool: [true, 'true'],
  int: [7, '7'],
  float32: [2.5, '2.5::FLOAT'],
  float64: [0.1, '0.1::DOUBLE'],
  text: ['none', "'none'"],
};

/** Literals as columns, which have their own types in any expression. */
const literals: readonly (readonly [Kind, string, string])[] = [
  ['float64', '3.3', '3.3::DOUBLE'],
  ['float64', '0.1', '0.1::DOUBLE'],
  ['int', '5', '5::BIGINT'],
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
      (plan) => this.#drop(plan),
      (plan) => this.#rename(plan),
      (plan) => this.#cast(plan),
      (plan) => this.#dropNulls(plan),
      (plan) => this.#fillNulls(plan),
      (plan) => this.#union(plan),
      (plan) => this.#limit(plan),
      (plan) => this.#orderBy(plan),
      (plan) => this.#limit(this.#orderBy(plan)),
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
    return next(plan, `filter(${own})`, (rows) => rows.filter(parseColumn(own)), {
      query: `SELECT * FROM (${plan.query}) WHERE ${other}`,
    });
  }

  #withColumn(plan: RandomPlan): RandomPlan {
    const kind = this.#pick(kinds);
    return this.#computed(plan, kind, this.#expression(plan, kind));
  }

  #literal(plan: RandomPlan): RandomPlan {
    const [kind, own, other] = this.#pick(literals);
    return this.#computed(plan, kind, [own, other]);
  }

  #computed(plan: RandomPlan, kind: Kind, [own, other]: Twin): RandomPlan {
    const names = Object.keys(plan.columns);
    const name = this.#random() < 0.3 ? this.#pick(names) : `n${this.#names++}`;
    return next(plan, `withColumn(${name}, ${own})`, (rows) => rows.withColumn(name, parseColumn(own)), {
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
      (rows) => rows.select(...names, ...(added === undefined ? [] : [parseColumn(own).as(added)])),
      added === undefined
        ? { columns }
        : { columns: { ...columns, [added]: kind }, values: { [added]: other } },
    );
  }

  #drop(plan: RandomPlan): RandomPlan {
    const all = Object.keys(plan.columns);
    const names = this.#some(all, 0.2);
    if (names.length === all.length) return plan;
    const columns = Object.fromEntries(
      Object.entries(plan.columns).filter(([name]) => !names.includes(name)),
    );
    return next(plan, `drop(${names.join(', ')})`, (rows) => rows.drop(...names), { columns });
  }

  #rename(plan: RandomPlan): RandomPlan {
    const from = this.#pick(Object.keys(plan.columns));
    const to = `n${this.#names++}`;
    const columns = Object.fromEntries(
      Object.entries(plan.columns).map(([name, kind]) => [name === from ? to : name, kind]),
    );
    return next(plan, `rename(${from}, ${to})`, (rows) => rows.withColumnRenamed(from, to), {
      columns,
      values: { [to]: `"${from}"` },
    });
  }

  #cast(plan: RandomPlan): RandomPlan {
    const name = this.#pick(Object.keys(plan.columns));
    const choices = casts[plan.columns[name]];
    if (choices === undefined) return plan;
    const [type, kind, sql] = this.#pick(choices);
    return next(plan, `cast(${name}, ${type})`, (rows) => rows.cast({ [name]: type }, 'null'), {
      columns: { ...plan.columns, [name]: kind },
      values: { [name]: sql.replace(/\bx\b/, `"${name}"`) },
    });
  }

  #dropNulls(plan: RandomPlan): RandomPlan {
    const all = Object.keys(plan.columns);
    const names = this.#random() < 0.3 ? [] : this.#some(all, 0.2);
    const tested = names.length === 0 ? all : names;
    return next(plan, `dropNulls(${names.join(', ')})`, (rows) => rows.dropNulls(...names), {
      query: `SELECT * FROM (${plan.query}) WHERE ${tested.map((name) => `"${name}" IS NOT NULL`).join(' AND ')}`,
    });
  }

  #fillNulls(plan: RandomPlan): RandomPlan {
    const name = this.#pick(Object.keys(plan.columns));
    const fill = fills[plan.columns[name]];
    if (fill === undefined) return plan;
    return next(plan, `fillNulls(${name})`, (rows) => rows.fillNulls({ [name]: fill[0] }), {
      values: { [name]: `coalesce("${name}", ${fill[1]})` },
    });
  }

  /** The rows, followed by some of them with their columns in another order. */
  #union(plan: RandomPlan): RandomPlan {
    const [own, other] = this.#expression(plan, 'bool');
    const names = Object.keys(plan.columns).toReversed();
    const columns = quoted(Object.keys(plan.columns));
    return next(
      plan,
      `union(filter(${own}))`,
      (rows) => rows.union(rows.filter(parseColumn(own)).select(...names)),
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
    const keys = this.#some(Object.keys(plan.columns), 0.2).map((name) =>
      this.#key(col(name), name, `"${name}"`),
    );
    const [own, other] = this.#expression(plan, this.#pick(kinds));
    if (this.#random() < 0.3) keys.unshift(this.#key(parseColumn(own), own, other));
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
