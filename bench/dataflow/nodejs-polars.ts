import { createRequire } from 'node:module';
import { join } from 'node:path';

/** The part of nodejs-polars that the pipelines use. It is not a dependency of this project. */
interface Polars {
  col(name: string): PolarsColumn;
  len(): PolarsColumn;
  scanParquet(path: string): PolarsRows;
}

interface PolarsColumn {
  alias(name: string): PolarsColumn;
  mean(): PolarsColumn;
}

interface PolarsRows {
  select(...columns: readonly string[]): PolarsRows;
  groupBy(keys: readonly string[]): { agg(...values: readonly PolarsColumn[]): PolarsRows };
  join(other: PolarsRows, options: { readonly on: string; readonly how: 'inner' }): PolarsRows;
  sort(by: readonly string[], descending?: readonly boolean[]): PolarsRows;
  unique(): PolarsRows;
  limit(rows: number): PolarsRows;
  collect(): Promise<{ readonly height: number }>;
}

/**
 * Pipelines over all rows with nodejs-polars, which is installed in `modules`; `items`: a row for each item.
 */
export function nodePolars(folder: string, modules: string, items: string) {
  const require = createRequire(join(modules, 'package.json'));
  const pl = require('nodejs-polars') as Polars;
  const rows = () => pl.scanParquet(`${folder}/*.parquet`);
  const height = async (result: PolarsRows) => (await result.collect()).height;
  const grouped = (...keys: readonly string[]) =>
    height(rows().groupBy(keys).agg(pl.len().alias('n'), pl.col('rating').mean().alias('mean')));
  const top = () => rows().groupBy(['item']).agg(pl.len().alias('n')).sort(['n', 'item'], [true, false]);
  return {
    items: () => grouped('item'),
    users: () => grouped('user'),
    pairs: () => grouped('user', 'item'),
    join: () => {
      const joined = rows().join(pl.scanParquet(items), { on: 'item', how: 'inner' });
      return height(joined.select('user', 'weight', 'rating'));
    },
    distinct: () => height(rows().select('user', 'item').unique()),
    top: () => height(top().limit(100)),
    sort: () => height(rows().sort(['user', 'timestamp'])),
  };
}
