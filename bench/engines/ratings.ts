/** Reading and writing of ratings, by FactorFlow on one core and by DuckDB on one thread. */
import { Field, Float64, Int32, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import { openSink } from '../../connectors/open-sink.ts';
import { openSource } from '../../connectors/open-source.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { batchStream } from '../../engine/stream/stream.ts';
import type { Works } from '../processes.ts';

const BATCH_ROWS = 1 << 16;
const context = { signal: new AbortController().signal, events: () => {} } as unknown as ExecutionContext;
const schema = new Schema([
  new Field('userId', new Int32()),
  new Field('movieId', new Int32()),
  new Field('rating', new Float64()),
  new Field('timestamp', new Int32()),
]);

/** Ratings with MovieLens-20M's numbers of users and items, scrambled by a counter. */
async function* ratings(rows: number): AsyncGenerator<RecordBatch> {
  for (let from = 0; from < rows; from += BATCH_ROWS) {
    const length = Math.min(BATCH_ROWS, rows - from);
    const scrambled = Uint32Array.from(
      { length },
      (_, i) => Math.imul(from + i, 2654435761) ^ ((from + i) >>> 7),
    );
    const ints = (of: (value: number, i: number) => number) =>
      makeData({ type: new Int32(), length, data: Int32Array.from(scrambled, of) });
    const stars = Float64Array.from(scrambled, (value) => ((value >>> 9) % 10) / 2 + 0.5);
    const children = [
      ints((value) => value % 138493),
      ints((value) => (Math.imul(value, 40503) >>> 0) % 26744),
      makeData({ type: new Float64(), length, data: stars }),
      ints((_, i) => 1112486027 + from + i),
    ];
    const struct = makeData({ type: new Struct(schema.fields), length, nullCount: 0, children });
    yield new RecordBatch(schema, struct);
  }
}

/** A file is of the format that its name's end gives. */
async function factorflow(file: string, rows: string): Promise<Works> {
  return {
    generate: async () => {
      for await (const batch of ratings(Number(rows))) if (batch.numRows === 0) throw new Error('no rows');
      return Number(rows);
    },
    write: async () => {
      await (
        await openSink(file, { overwrite: true })
      ).consume(batchStream(schema, ratings(Number(rows))), context);
      return Number(rows);
    },
    read: async () => {
      let found = 0;
      for await (const { numRows } of await (await openSource(file)).execute(context)) found += numRows;
      return found;
    },
  };
}

async function duckdb(file: string): Promise<Works> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();
  return {
    read: async () => {
      const sums = `sum("userId"), sum("movieId"), sum(rating), sum("timestamp"), count(*)::DOUBLE`;
      return Number((await connection.runAndReadAll(`SELECT ${sums} FROM '${file}'`)).getRows()[0][4]);
    },
  };
}

export const engines = { factorflow, duckdb };
