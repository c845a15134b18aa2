/** Each line of the table in docs/expressions.md that says which of Spark and DuckDB is followed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { batchOf, type Cell, column, evaluated } from './evaluated.ts';

const batch = batchOf({
  f: column('float32', [3.3]),
  n: column('int32', [-7]),
  big: column('int64', [2n ** 63n - 1n]),
  nan: column('float64', [Number.NaN]),
  none: column('float64', [null]),
  zero: column('float64', [0]),
  t: column('utf8', ['t']),
  day: column('date', [19_789]),
  ts: column('timestamp', [1_709_251_200_000_000n]),
});

/** An expression, its value, and DuckDB's expression where it is written in another way. */
type Case = readonly [own: string, value: Cell | 'fails', duck?: string];

const lines: Readonly<Record<string, readonly Case[]>> = {
  '`NaN = NaN`, `NaN > x`': [
    ['nan = nan', true],
    ['nan > 1e308', true],
    ['nan >= 3.5', true],
    ['nan < 1', false],
    ['greatest(nan, 1)', Number.NaN],
    ['least(nan, 1)', 1],
  ],
  '`-0.0 = 0.0`': [['-zero = zero', true]],
  '`a < b` of texts': [
    ["'Z' < 'a'", true],
    ["'\u{1F600}' > '\uFFFD'", true],
    ["'a' < 'aa'", true],
  ],
  '`least`, `greatest`': [
    ['least(none, 2, 1)', 1],
    ['greatest(none, 2, 1)', 2],
  ],
  '`x in (1, null)`': [
    ['n in (1, null)', null],
    ['n in (-7, null)', true],
    ['n not in (1, null)', null],
  ],
  '`3.3 = x` of float32': [
    ['3.3 = f', true, '3.3::FLOAT = f'],
    ['f >= 3.3', true, 'f >= 3.3'],
  ],
  '`0.1 + 0.2`': [['0.1 + 0.2 = 0.3', false]],
  'integer `+`, `-`, `*`, `abs`, `-x`': [
    ['big + 1', 'fails'],
    ['cast(127 as int8) + cast(1 as int8)', 128, '127::TINYINT + 1::TINYINT'],
    ['abs(n)', 7],
  ],
  '`x / y`': [
    ['n / 2', -3.5],
    ['cast(1 as int64) / 4', 0.25],
  ],
  '`x / 0`, `x % 0`': [
    ['n / 0', null],
    ['zero / 0', null, 'zero / 0::DOUBLE'],
    ['1 / zero', null],
    ['n % 0', null],
  ],
  '`-7 % 2`': [
    ['n % 2', -1],
    ['7 % -2', 1],
  ],
  '`sqrt(-1)`': [['sqrt(n)', Number.NaN]],
  '`ln(0)`, `log1p(-1)` and below': [
    ['ln(zero)', null],
    ['ln(n)', null],
    ['log1p(zero - 1)', null, 'ln(1 + (zero - 1))'],
  ],
  '`round(2.5)`, `round(-2.5)`': [
    ['round(zero + 2.5)', 3],
    ['round(zero - 2.5)', -3],
    ['round(zero + 0.125, 2)', 0.13],
  ],
  '`floor`, `ceil`, `round`': [
    ['floor(f) = 3', true],
    ['ceil(n)', -7],
    ['floor(zero + 1e300)', 1e300],
  ],
  '`cast(-1.9 as int)` of a float': [
    ['cast(zero - 1.9 as int)', -1],
    ['cast(zero + 2.5 as int)', 2],
  ],
  '`cast(x as int)` of a decimal -1.9': [
    ['cast(cast(-1.9 as decimal(2,1)) as int)', -2],
    ['cast(cast(2.5 as decimal(2,1)) as int)', 3],
  ],
  '`cast(300 as int8)`, `cast(NaN as int)`': [
    ['cast(300 as int8)', 'fails', 'cast(300 as tinyint)'],
    ['cast(nan as int)', 'fails'],
    ['try_cast(300 as int8)', null, 'try_cast(300 as tinyint)'],
    ['try_cast(nan as int)', null],
  ],
  "`cast('x' as int)`": [
    ['cast(t as int)', 'fails'],
    ['try_cast(t as int)', null],
    ["cast(' 12 ' as int)", 12],
  ],
  "`cast('1.5' as int)`": [
    ["cast('1.5' as int)", 'fails'],
    ["try_cast('1.5' as int)", null],
  ],
  '`cast(5.0 as text)`': [['cast(zero + 5 as text)', '5']],
  "`cast(0.5 as bool)`, `cast('yes' as bool)`": [
    ['cast(zero + 0.5 as bool)', true],
    ["cast('yes' as bool)", true],
    ['cast(zero as bool)', false],
  ],
  '`concat(t, null)`': [
    ['concat(t, cast(null as text))', null],
    ['t || cast(null as text)', null],
  ],
  '`trim(t)`': [["trim(' \ta\t ')", '\ta\t']],
  "`upper('ß')`": [["upper('ß')", 'SS']],
  "`length('😀')`": [["length('😀')", 1]],
  '`substring(t, 0, 2)`': [
    ["substring('abc', 0, 2)", 'ab'],
    ["substring('abc', -2, 2)", 'bc'],
  ],
  '`like`': [
    [String.raw`'a%' like 'a\%'`, true],
    ["'ab' like 'a_'", true],
  ],
  "`t ~ 'a'`": [["'bab' ~ 'a'", true]],
  '`dayOfWeek(x)`': [['dayOfWeek(day)', 5, 'dayofweek(day)']],
  "`truncate(x, 'week')`": [
    [
      "truncate(ts, 'week') = timestamp '2024-02-26'",
      true,
      "date_trunc('week', ts) = timestamp '2024-02-26'",
    ],
  ],
  '`truncate` of a date': [
    ["cast(truncate(day, 'month') as text)", '2024-03-01', "cast(date_trunc('month', day) as text)"],
  ],
  '`hour(x)` and the other parts': [
    ['hour(ts)', 0],
    ['day(ts)', 1],
  ],
  '`timestampSeconds(NaN)`': [['timestampSeconds(nan)', null, 'to_timestamp(nan)']],
  '`case`': [["case when t = 't' then 0 else cast(t as int) end", 0]],
  '`and`, `or`': [
    ["t = 't' or cast(t as int) > 1", true],
    ["t != 't' and cast(t as int) > 1", false],
  ],
};

/** The lines of the table: expression, value, and which is followed. */
const table = readFileSync(join(import.meta.dirname, '../../../docs/expressions.md'), 'utf8')
  .split('\n')
  .flatMap((line) => {
    const cells = /^\| (.*) \| (.*) \| (.*) \|$/.exec(line.replaceAll(String.raw`\|`, '¦'));
    return cells ? [cells.slice(1, 4).map((cell) => cell.replaceAll('¦', '|'))] : [];
  });
const followed = table.slice(table.findIndex(([, , as]) => as === 'as in') + 1);

beforeAll(async () => {
  await (
    await duckdb()
  )
    .run(`CREATE TABLE followed AS SELECT 3.3::FLOAT AS f, (-7)::INTEGER AS n, 9223372036854775807::BIGINT AS big,
    'NaN'::DOUBLE AS nan, NULL::DOUBLE AS "none", 0::DOUBLE AS zero, 't' AS t, DATE '2024-03-07' AS "day", TIMESTAMP '2024-03-01' AS ts`);
});

function own(text: string): Cell | 'fails' {
  try {
    return plain(evaluated(text, batch)[0]);
  } catch {
    return 'fails';
  }
}

async function ducks(text: string): Promise<unknown> {
  const [[value]] = await duckRows(`SELECT ${text} FROM followed`).catch(() => [['fails']]);
  return plain(value as Cell);
}

const plain = (value: Cell) => (typeof value === 'bigint' ? Number(value) : value);

it('lists the lines of the table', () => {
  expect(followed.map(([expression]) => expression)).toEqual(Object.keys(lines));
});

describe.each(followed)('%s is %s', (expression, _, as) => {
  it(`as in ${as}`, async () => {
    const cases = lines[expression];
    for (const [text, value] of cases) expect([text, own(text)]).toEqual([text, value]);
    const values = await Promise.all(cases.map(([text, , duck = text]) => ducks(duck)));
    const ours = cases.map(([, value]) => plain(value));
    if (/^(both|DuckDB)/.test(as)) expect(values).toEqual(ours);
    else expect(values).not.toEqual(ours);
  });
});
