/** Runs aggregations over rows in random parts, and the same by DuckDB. */
import {
  type Data,
  Field,
  type RecordBatch,
  RecordBatch as Batch,
  makeData,
  Schema,
  Struct,
} from 'apache-arrow';
import { parseExpression } from '../../../../connectors/expressions/parse-expression.ts';
import type { Operator } from '../../../../engine/stream/operator.ts';
import { batchStream } from '../../../../engine/stream/stream.ts';
import {
  Aggregate,
  type AggregateName,
  type Aggregation,
} from '../../../../operators/dataflow/aggregate/aggregate.ts';
import { operatorFrom } from '../../../../operators/pipeline/operator-chain.ts';
import { collect, plain } from '../../../connectors/parquet/parquet-testing.ts';
import { batchOf, cellsOf } from '../../../engine/expressions/evaluated.ts';
import { type ColumnKind, exactly, plainCell } from '../../../engine/expressions/random-rows.ts';

export interface Rows {
  readonly schema: Schema;
  readonly batches: readonly RecordBatch[];
}

/** The rows with columns that may have nulls. */
export function nullable(batch: RecordBatch): RecordBatch {
  const fields = batch.schema.fields.map(({ name, type }) => new Field(name, type, true));
  const type = new Struct(fields);
  return new Batch(
    new Schema(fields),
    makeData({ type, length: batch.numRows, children: batch.data.children }),
  );
}

/** Cuts rows into pieces, some of them empty. */
export function cutRows(batch: RecordBatch, random: () => number): RecordBatch[] {
  const pieces: RecordBatch[] = [];
  for (let from = 0; from < batch.numRows;) {
    const length = Math.floor(random() * Math.min(60, batch.numRows + 1));
    pieces.push(batch.slice(from, from + length));
    from += length;
  }
  return pieces;
}

async function* each(batches: readonly RecordBatch[]) {
  yield* batches;
}

/** The operator as another thread makes it, over these rows. */
export async function run(operator: Operator, { schema, batches }: Rows): Promise<Rows> {
  const made = await operatorFrom(operator.portable?.() ?? { operator: operator.name });
  const output = made.execute(batchStream(schema, each(batches)), undefined as never);
  return { schema: output.schema, batches: await collect(output) };
}

/** By one step over all rows. */
export function whole(
  rows: Rows,
  keys: readonly string[],
  aggregations: readonly Aggregation[],
): Promise<Rows> {
  return run(new Aggregate({ keys, aggregations, step: 'whole' }), rows);
}

/** By partial steps over random parts of the rows, and a final one. */
export async function inParts(
  { schema, batches }: Rows,
  options: Pick<ConstructorParameters<typeof Aggregate>[0], 'keys' | 'aggregations'>,
  random: () => number,
): Promise<Rows> {
  const partial = new Aggregate({ ...options, step: 'partial' });
  const states: RecordBatch[] = [];
  for (let from = 0; from < batches.length;) {
    const to = from + 1 + Math.floor(random() * 3);
    states.push(...(await run(partial, { schema, batches: batches.slice(from, to) })).batches);
    from = to;
  }
  const recut = states.flatMap((batch) => cutRows(batch, random));
  return run(new Aggregate({ ...options, step: 'final' }), {
    schema: partial.outputSchema(schema),
    batches: recut,
  });
}

/** Plain values by row; lists as arrays. */
export function cellsByRow({ schema, batches }: Rows, kinds: readonly ColumnKind[]): unknown[][] {
  return batches.flatMap((batch) => {
    const columns = schema.fields.map((_, i) =>
      cellsOf(batch.data.children[i]).map((cell) => {
        const kind = kinds[i];
        return kind === 'list' ? Array.from(plain(cell) as unknown[], onlyZero) : plainCell(cell, kind);
      }),
    );
    return Array.from({ length: batch.numRows }, (_, row) => columns.map((cells) => cells[row]));
  });
}

export const onlyZero = (value: unknown) => (typeof value === 'number' ? value + 0 : value);

/** DuckDB's expression for an aggregate of a column, and the kind of its result. */
export function duckAggregate(
  call: Aggregation['call'],
  column: string | undefined,
  kind: ColumnKind,
  order: string,
  further: { readonly p?: number; readonly by?: string } = {},
): { readonly sql: string; readonly kind: ColumnKind } {
  const own = `"${column}"`;
  const ordered = `ORDER BY "${order}"`;
  switch (call) {
    case 'count':
      return { sql: `count(${column === undefined ? '*' : own})`, kind: 'wide' };
    case 'countDistinct':
      return { sql: `count(DISTINCT ${own})`, kind: 'wide' };
    case 'sum': {
      const total = kind === 'int' ? 'wide' : kind.startsWith('float') ? 'float64' : kind;
      return { sql: exactly(total, `sum(${own})`), kind: total };
    }
    case 'mean':
      return { sql: `avg(${own})`, kind: 'float64' };
    case 'stddev':
      return { sql: `stddev_samp(${own})`, kind: 'float64' };
    case 'collectList':
      return { sql: `coalesce(list(${own} ${ordered}) FILTER (${own} IS NOT NULL), [])`, kind: 'list' };
    case 'collectSet': {
      const list = `coalesce(list(${own} ${ordered}) FILTER (${own} IS NOT NULL), [])`;
      return { sql: `list_filter(${list}, lambda x, i: list_position(${list}, x) = i)`, kind: 'list' };
    }
    case 'median':
    case 'quantile':
      return quantileOf(own, kind, further.p);
    case 'minBy':
    case 'maxBy': {
      const chosen = `${call === 'minBy' ? 'arg_min' : 'arg_max'}(${own}, "${further.by}" ${ordered})`;
      return { sql: exactly(kind, chosen), kind };
    }
    case 'first':
    case 'last':
      return { sql: exactly(kind, `${call}(${own} ${ordered})`), kind };
    default:
      return { sql: exactly(kind, `${call}(${own})`), kind };
  }
}

function quantileOf(column: string, kind: ColumnKind, p = 0.5) {
  return kind === 'decimal'
    ? { sql: exactly(kind, `quantile_cont(${column}, ${p})`), kind }
    : { sql: `quantile_cont(${column}::DOUBLE, ${p})`, kind: 'float64' as const };
}

/** The columns as rows of one batch. */
export const rowsOf = (columns: Readonly<Record<string, Data>>): Rows => {
  const batch = nullable(batchOf(columns));
  return { schema: batch.schema, batches: [batch] };
};
/** An aggregation; `value`: SQL. */
export const named = (name: string, call: AggregateName, value?: string): Aggregation => ({
  name,
  call,
  ...(value !== undefined && { value: parseExpression(value) }),
});

/** The rows as plain objects. */
export function objectsOf({ schema, batches }: Rows): Record<string, unknown>[] {
  return batches.flatMap((batch) =>
    Array.from({ length: batch.numRows }, (_, row) =>
      Object.fromEntries(schema.fields.map(({ name }, i) => [name, plain(batch.getChildAt(i)?.get(row))])),
    ),
  );
}
