import { expect, it, test } from 'vitest';
import * as columns from '../../api/expressions.ts';
import * as ofColumns from '../../api/functions.ts';
import { parseExpression } from '../../connectors/expressions/parse-expression.ts';
import { functions } from '../../engine/expressions/functions/table.ts';
import { partsOf, type Expression } from '../../engine/expressions/expression.ts';

const { col, lit, when } = columns;
const api = { ...columns, ...ofColumns };
const x = col('x');

const cases: readonly (readonly [columns.Column, string])[] = [
  [x.ge(3.5).and(col('ts').lt('2024-01-01')), "x >= 3.5 and ts < '2024-01-01'"],
  [x.eq(1).or(x.equalTo(2)).or(x.ne(3)).or(x.notEqual(4)), 'x = 1 or x = 2 or x != 3 or x != 4'],
  [x.leq(1).and(x.geq(2)).and(x.le(3)).and(x.gt(4)), 'x <= 1 and x >= 2 and x <= 3 and x > 4'],
  [x.between(1, 2).not(), 'not (x >= 1 and x <= 2)'],
  [
    x.isIn('a', 'b').and(x.isNull()).and(x.isNotNull()).and(x.isNaN()),
    "x in ('a', 'b') and x is null and x is not null and isNaN(x)",
  ],
  [x.eqNullSafe(null), 'x <=> null'],
  [x.plus(1).minus(2).times(x.divide(4)).mod(5), '(x + 1 - 2) * (x / 4) % 5'],
  [x.negate().plus(lit(-1)), '-x + -1'],
  [x.like('a%').or(x.rlike('b')), "x like 'a%' or x ~ 'b'"],
  [
    x.startsWith('a').and(x.endsWith('b')).and(x.contains(x)),
    "startsWith(x, 'a') and endsWith(x, 'b') and contains(x, x)",
  ],
  [x.cast('int32'), 'cast(x as int32)'],
  [x.cast('int32', 'null'), 'try_cast(x as int32)'],
  [api.toTimestamp(x), 'cast(x as timestamp)'],
  [
    when(x.gt(1), 'a').when(x.lt(0), 'b').otherwise('c'),
    "case when x > 1 then 'a' when x < 0 then 'b' else 'c' end",
  ],
  [when(x.gt(1), x), 'case when x > 1 then x end'],
  [api.coalesce(x, 0).plus(api.ifNull(x, 1)), 'coalesce(x, 0) + coalesce(x, 1)'],
  [api.least(x, 1).plus(api.greatest(x, 2)), 'least(x, 1) + greatest(x, 2)'],
  [api.round(x).plus(api.round(x, 2)), 'round(x, 0) + round(x, 2)'],
  [api.pow(api.abs(api.sqrt(x)), 2), 'pow(abs(sqrt(x)), 2)'],
  [api.ln(api.log1p(api.exp(api.floor(api.ceil(x))))), 'ln(log1p(exp(floor(ceil(x)))))'],
  [api.length(api.lower(api.upper(api.trim(x)))), 'length(lower(upper(trim(x))))'],
  [
    api.concat(x, '-', api.substring(x, 1, 2), api.substring(x, -1), api.replace(x, 'a', 'b')),
    "concat(x, '-', substring(x, 1, 2), substring(x, -1), replace(x, 'a', 'b'))",
  ],
  [
    api.regexpReplace(api.regexpExtract(x, 'a(b)', 1), 'b', 'c'),
    "regexpReplace(regexpExtract(x, 'a(b)', 1), 'b', 'c')",
  ],
  [
    api.concat(api.splitPart(x, '|', -1), api.jsonText(x, '$.a', 'null')),
    "concat(splitPart(x, '|', -1), jsonText(x, '$.a', 'null'))",
  ],
  [
    api.listLength(api.split(api.field(api.elementAt(x, 1), 'a'), '|')),
    "listLength(split(field(elementAt(x, 1), 'a'), '|'))",
  ],
  [api.dateAdd(api.atZone(x, 'Asia/Tokyo'), 1, 'day'), "dateAdd(atZone(x, 'Asia/Tokyo'), 1, 'day')"],
  [api.truncate(api.timestampSeconds(x), 'month'), "truncate(timestampSeconds(x), 'month')"],
  [
    api
      .unixSeconds(x)
      .plus(api.year(x))
      .plus(api.month(x))
      .plus(api.day(x))
      .plus(api.hour(x))
      .plus(api.dayOfWeek(x)),
    'unixSeconds(x) + year(x) + month(x) + day(x) + hour(x) + dayOfWeek(x)',
  ],
];

test.each(cases)('%s', (column, text) => {
  expect(String(column)).toBe(text);
  expect(parseExpression(text)).toEqual(column.expression);
});

it('a column has its name, or that which it was given, and is never changed', () => {
  const sum = x.plus(1);
  expect([x.name, sum.name, sum.as('y').name, sum.alias('z').name, x.as('w').name]).toEqual([
    'x',
    undefined,
    'y',
    'z',
    'w',
  ]);
  expect(sum.as('y').expression).toBe(sum.expression);
});

it('constants keep their types', () => {
  const date = new Date(Date.UTC(2024, 0, 2));
  expect([lit(5), lit(5n), lit(0.5), lit(2n ** 63n), lit(date)].map(({ expression }) => expression)).toEqual([
    { kind: 'literal', type: 'int64', value: '5' },
    { kind: 'literal', type: 'int64', value: '5' },
    { kind: 'literal', type: 'float64', value: 0.5 },
    { kind: 'literal', type: 'uint64', value: '9223372036854775808' },
    { kind: 'literal', type: 'timestamp', value: '2024-01-02T00:00:00.000Z' },
  ]);
});

it('every function can be built', () => {
  const named = (one: Expression): string[] => [
    ...(one.kind === 'call' ? [one.name] : []),
    ...partsOf(one).flatMap(named),
  ];
  const built = new Set(cases.flatMap(([{ expression }]) => named(expression)));
  expect(Object.keys(functions).filter((name) => !built.has(name))).toEqual([]);
});

it('a column is nested at most 500 levels deep, whichever way it is made', () => {
  const repeated = (times: number, wrap: (column: columns.Column) => columns.Column) => {
    let made: columns.Column = x;
    for (let i = 0; i < times; i++) made = wrap(made);
    return made;
  };
  const ways = [
    (one: columns.Column) => one.not(),
    (one: columns.Column) => one.plus(1),
    (one: columns.Column) => one.cast('int32'),
    (one: columns.Column) => when(one, 1).otherwise(2),
  ];
  for (const wrap of ways) {
    repeated(499, wrap);
    expect(() => repeated(500, wrap)).toThrow('an expression is nested more than 500 levels deep');
  }
  expect(
    repeated(20_000, (one) => one.or(x))
      .toString()
      .match(/x/g),
  ).toHaveLength(20_001);
});
