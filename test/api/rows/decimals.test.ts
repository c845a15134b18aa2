/** Decimals keep their digits: in expressions, aggregates, windows, joins and files, with DuckDB's types. */
import { DataType } from 'apache-arrow';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  ALS,
  col,
  type Column,
  type Dataset,
  expr,
  lit,
  max,
  mean,
  median,
  min,
  sum,
  when,
} from '../../../index.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const session = await cpuSession({ workers: 3, splitBytes: 4000 });

/** Money in cents, a share in thousandths, amounts beyond 2^53, and integers; one row in seven has a null. */
const TABLE = `SELECT i, i % 5 AS key, (i * i % 4000 / 100 - 7)::DECIMAL(9, 2) AS price,
    CASE WHEN i % 7 <> 0 THEN (i % 999 / 1000)::DECIMAL(4, 3) END AS share,
    (i::HUGEINT * 1000000000000000003 - 5 * 10::HUGEINT ** 20)::DECIMAL(30, 4) AS amount,
    (i % 40)::INTEGER AS n, (i % 17)::DOUBLE AS x FROM range(1500) t(i)`;

let rows: Dataset;
beforeAll(async () => {
  const duck = await duckdb();
  await duck.run(`CREATE OR REPLACE TABLE decimals AS ${TABLE}`);
  await duck.run(`COPY (FROM decimals) TO '${path('rows.parquet')}' (FORMAT parquet, ROW_GROUP_SIZE 200)`);
  rows = session.read.parquet(path('rows.parquet'));
});

const duckType = (type: DataType) =>
  DataType.isDecimal(type) ? `DECIMAL(${type.precision},${type.scale})` : `${type}`;

/** Type and texts of a column. */
async function textsOf(data: Dataset, name: string): Promise<{ type: string; texts: unknown[] }> {
  const { fields } = await data.schema();
  const texts = await data.select('i', col(name).cast('utf8').as('text')).orderBy('i').toArray();
  return {
    type: duckType(fields.find((field) => field.name === name)!.type),
    texts: texts.map(({ text }) => text),
  };
}

describe('expressions have the values and types of DuckDB', () => {
  const price = col('price');
  it.each<[string, () => Column]>([
    ['price * 2', () => price.times(2)],
    ['price * 0.9', () => price.times(0.9)],
    ['price * 20000000000', () => price.times(20_000_000_000n)],
    ['price + 0.125', () => price.plus(0.125)],
    ['1 - share', () => lit(1).minus(col('share'))],
    ['price * (1 - share)', () => expr('price * (1 - share)')],
    ['price - n', () => price.minus(col('n'))],
    ['price % 1.5', () => price.mod(1.5)],
    ['amount * 3', () => col('amount').times(3)],
    ['amount + price', () => col('amount').plus(price)],
    ['-abs(amount)', () => expr('-abs(amount)')],
    ['round(price * 0.19, 2)', () => expr('round(price * 0.19, 2)')],
    ['round(price, -1)', () => expr('round(price, -1)')],
    ['floor(price)', () => expr('floor(price)')],
    ['ceil(amount)', () => expr('ceil(amount)')],
    ['price::DECIMAL(6, 1)', () => price.cast('decimal(6,1)')],
    ['coalesce(share, 0)', () => expr('coalesce(share, 0)')],
    ['CASE WHEN n > 3 THEN price ELSE share END', () => when(col('n').gt(3), price).otherwise(col('share'))],
    ['greatest(price, share, n)', () => expr('greatest(price, share, n)')],
    ['x::DECIMAL(5, 2)', () => col('x').cast('decimal(5,2)')],
    ["'12.345'::DECIMAL(5, 2)", () => lit('12.345').cast('decimal(5,2)')],
    ['n::NUMERIC(12)', () => expr('cast(n as numeric(12))')],
  ])('%s', async (sql, own) => {
    const found = await textsOf(rows.withColumn('found', own()), 'found');
    const wanted = await duckRows(`SELECT typeof(${sql}), (${sql})::VARCHAR FROM decimals ORDER BY i`);
    expect(found).toEqual({ type: wanted[0][0], texts: wanted.map(([, text]) => text) });
    // The text of an expression is the expression.
    expect(expr(String(own())).expression).toEqual(own().expression);
  });

  it.each([
    ['price / share', 'price / nullif(share, 0)'],
    ['price * x', 'price * x'],
    ['sqrt(abs(price))', 'sqrt(abs(price))'],
    ['price * 0.30000000000000004', 'price * 0.30000000000000004::DOUBLE'],
  ])('%s is float64', async (own, sql) => {
    const found = rows.select('i', expr(own).as('y')).orderBy('i');
    expect(String((await found.schema()).fields[1].type)).toBe('Float64');
    const wanted = await duckRows(`SELECT ${sql} FROM decimals ORDER BY i`);
    expect((await found.toArray()).map(({ y }) => y)).toEqual(wanted.map(([y]) => y));
  });

  it.each([
    'price > 5',
    'price >= 12.345',
    'price = n',
    'share < price',
    'amount > 9007199254740993',
    'price in (1, 2.5, -6.99)',
    'price between share and 10',
    'amount = price',
    'price <= x',
  ])('%s', async (condition) => {
    const [[wanted]] = await duckRows(`SELECT count(*) FROM decimals WHERE ${condition}`);
    expect(BigInt(await rows.filter(expr(condition)).count())).toBe(wanted);
  });

  it('compares beyond 38 digits, where DuckDB fails', async () => {
    const wide = rows.withColumn('small', expr('cast(1.5 as decimal(38, 36))'));
    expect(await wide.filter(expr('amount * 10000 > small and i = 1499')).count()).toBe(1);
  });
});

describe('aggregates and windows', () => {
  it('sum to 38 digits; the others keep the type, and the mean is float64', async () => {
    const calls = ['price', 'amount', 'share'].flatMap((name) => [
      sum(name).as(`sum ${name}`),
      min(name).as(`min ${name}`),
      max(name).as(`max ${name}`),
      median(name).as(`median ${name}`),
    ]);
    const found = rows
      .groupBy('key')
      .agg(...calls, mean('price').as('mean'))
      .orderBy('key');
    const names = calls.map(({ name }) => name);
    const sql = names.map((name) => {
      const [call, column] = name.split(' ');
      return `${call}(${column})`;
    });
    const wanted = await duckRows(
      `SELECT ${sql.map((one) => `typeof(${one}), (${one})::VARCHAR`).join()}, avg(price) FROM decimals GROUP BY key ORDER BY key`,
    );
    const { fields } = await found.schema();
    const texts = await found
      .select(...names.map((name) => col(name).cast('utf8').as(name)), 'mean')
      .toArray();
    expect(
      texts.map((row) => [
        ...names.flatMap((name) => [duckType(fields.find((field) => field.name === name)!.type), row[name]]),
        row.mean,
      ]),
    ).toEqual(wanted);
  });

  it.each([
    ['sum', sum('amount'), 'sum(amount)'],
    ['max', max('price'), 'max(price)'],
  ] as const)('%s over a range of decimals', async (_, own, sql) => {
    const window = { partitionBy: 'key', orderBy: 'price', range: [-0.29, 1.5] } as const;
    const found = await textsOf(rows.withColumn('y', own.over(window)), 'y');
    const over = 'PARTITION BY key ORDER BY price RANGE BETWEEN 0.29 PRECEDING AND 1.5 FOLLOWING';
    const wanted = await duckRows(
      `SELECT typeof(y), y::VARCHAR FROM (SELECT i, ${sql} OVER (${over}) AS y FROM decimals) ORDER BY i`,
    );
    expect(found).toEqual({ type: wanted[0][0], texts: wanted.map(([, text]) => text) });
  });
});

describe('joins and unions by value', () => {
  it('of other scales, and of integers', async () => {
    const other = rows.select(col('price').cast('decimal(20,5)').as('cost'), col('i').as('other'));
    const whole = rows.select(col('n'), col('i').as('third'));
    const joined = rows
      .join(other, { left: 'price', right: 'cost' })
      .join(whole, { left: 'price', right: 'n' });
    const [[wanted]] = await duckRows(`SELECT count(*) FROM decimals a
      JOIN decimals b ON a.price = b.price::DECIMAL(20, 5) JOIN decimals c ON a.price = c.n`);
    expect(BigInt(await joined.count())).toBe(wanted);
    const type = (await joined.schema()).fields.find(({ name }) => name === 'price')!.type;
    expect(duckType(type)).toBe('DECIMAL(20,5)');
  });

  it('refuse floats, and types of together more than 38 digits', async () => {
    const floats = rows.select(col('x'), col('i').as('other'));
    await expect(rows.join(floats, { left: 'price', right: 'x' }).count()).rejects.toThrow(
      'the key "price" of the left is Decimal[9e+2], and "x" of the right is Float64',
    );
    const long = rows.select(col('share').cast('decimal(38,36)').as('y'), col('i').as('other'));
    await expect(rows.join(long, { left: 'amount', right: 'y' }).count()).rejects.toThrow('Decimal[38e+36]');
  });

  it('unions have a type for the values of all', async () => {
    const parts = ['price', 'share', 'n'].map((name) => rows.select(col('i'), col(name).as('y')));
    const [first, ...others] = parts;
    const found = first.union(...others);
    expect(duckType((await found.schema()).fields[1].type)).toBe('DECIMAL(13,3)');
    const [[wanted]] = await duckRows(`SELECT sum(y)::VARCHAR FROM
      (SELECT price AS y FROM decimals UNION ALL SELECT share FROM decimals UNION ALL SELECT n FROM decimals)`);
    const totals = await found.groupBy().agg(sum('y').as('total')).toArray();
    expect(totals[0].total).toBe(Number(wanted));
    expect(await found.filter(expr("cast(y as text) = '5.000'")).count()).toBe(
      Number(
        (
          await duckRows(
            'SELECT sum((price = 5)::INT + (n = 5)::INT + (coalesce(share, 0) = 5)::INT) FROM decimals',
          )
        )[0][0],
      ),
    );
  });
});

describe('files', () => {
  it('Parquet and Arrow have the type; CSV and NDJSON all digits', async () => {
    const made = rows
      .filter(expr('i < 3 or i > 1497'))
      .select('i', 'price', col('amount').times(2).as('twice'));
    await made.write.parquet(path('made.parquet'));
    const types = 'SELECT i, typeof(price), typeof(twice), price::VARCHAR, twice::VARCHAR FROM';
    const wanted = await duckRows(
      `${types} (SELECT *, amount * 2 AS twice FROM decimals WHERE i < 3 OR i > 1497) ORDER BY i`,
    );
    expect(await duckRows(`${types} '${path('made.parquet')}' ORDER BY i`)).toEqual(wanted);
    await made.write.arrow(path('made.arrow'));
    const back = session.read.arrow(path('made.arrow'));
    expect((await back.schema()).fields.map(({ type }) => duckType(type)).slice(1)).toEqual(
      wanted[0].slice(1, 3),
    );
    expect((await textsOf(back, 'twice')).texts).toEqual(wanted.map((row) => row[4]));
    await made.write.csv(path('made.csv'));
    const lines = wanted.map(([i, , , price, twice]) => `${i},${price},${twice}`);
    expect(readFileSync(path('made.csv'), 'utf8').trimEnd().split('\n')).toEqual(['i,price,twice', ...lines]);
    await made.write.ndjson(path('made.ndjson'));
    const objects = readFileSync(path('made.ndjson'), 'utf8').trimEnd().split('\n');
    expect(objects.map((line) => /"twice":"?([-\d.]+)/.exec(line)?.[1])).toEqual(wanted.map((row) => row[4]));
  });

  it('a function of rows takes and gives them', async () => {
    const module = new URL('./clean.ts', import.meta.url).href;
    const few = rows.select('i', 'price', 'amount').filter(expr('i < 30'));
    const same = few.mapRows({ module, name: 'sameRow' });
    expect((await textsOf(same, 'amount')).texts).toEqual((await textsOf(few, 'amount')).texts);
    expect(String((await same.schema()).fields[1].type)).toBe('Decimal[9e+2]');
    await expect(
      few
        .withColumn('price', lit(1).cast('decimal(1,0)'))
        .mapRows({ module, name: 'sameRow', args: { price: 11 } })
        .count(),
    ).rejects.toThrow('11 is no value of "price", which is Decimal[1e0]');
  });

  it('ids of training keep their value', async () => {
    const ratings = rows.select(
      col('n').times(lit(10_000_000_000_000n)).cast('decimal(20,0)').as('user'),
      col('i').mod(7).cast('decimal(6,2)').as('item'),
      col('share').times(5).as('rating'),
    );
    const model = await new ALS({ rank: 2, maxIter: 1, userCol: 'user', itemCol: 'item' }).fit(
      ratings.dropNulls(),
    );
    const users = [...(model.userFactors.getChildAt(0) as Iterable<bigint>)];
    expect(users).toContain(390_000_000_000_000n);
    expect(users.length).toBe(40);
  });
});

describe('errors', () => {
  it.each([
    ['amount * amount * amount * amount', /has 40 digits|is beyond decimal\(38,/],
    ['amount * amount', /is beyond decimal\(38,8\)/],
    ['cast(amount as decimal(38, 36)) * price', /digits after the point|is no decimal/],
    ['cast(price as decimal(3, 2))', /'\d\d\.\d\d' is no decimal\(3,2\)/],
    ['cast(amount as int32)', /is no int32/],
    ['cast(price as decimal(39, 2))', /there is no type decimal\(39,2\)/],
    ['cast(price as decimal(2, 3))', /there is no type decimal\(2,3\)/],
    ["price = 'a'", /does not fit x = y: price is decimal\(9,2\), 'a' is utf8/],
  ])('%s', async (text, message) => {
    const computed = async () => rows.withColumn('y', expr(text)).select('y').toArray();
    await expect(computed()).rejects.toThrow(message);
  });

  it('name the row; try_cast gives null', async () => {
    await expect(rows.filter(col('price').cast('decimal(3,2)').gt(0)).count()).rejects.toThrow(/row \d+/);
    const [[wanted]] = await duckRows('SELECT count(TRY_CAST(price AS DECIMAL(3, 2))) FROM decimals');
    const found = await rows
      .dropNulls('price')
      .withColumn('y', col('price').cast('decimal(3,2)', 'null'))
      .dropNulls('y')
      .count();
    expect(BigInt(found)).toBe(wanted);
  });

  it('a sum beyond 38 digits', async () => {
    const most = rows.select(lit('9'.repeat(38)).cast('decimal(38,0)').as('y'));
    await expect(most.groupBy().agg(sum('y')).toArray()).rejects.toThrow('sum(y) is beyond decimal(38,0)');
  });
});
