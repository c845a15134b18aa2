import { Bool, Field, makeData, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { Source } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { listSchema, type RecommendOptions, topBatch } from './recommend.ts';
import { NO_ITEM } from './top-lists.ts';
import type { Found } from './search.ts';

/** Number of requests in progress at the same time, and of lists in a batch of the result. */
const AT_ONCE = 8;

export interface FewOptions extends Pick<RecommendOptions, 'n' | 'columns'> {
  /**
   * Finds the list of one row. Called once for each row of a stream, and for several rows at the same time.
   */
  readonly find: (row: number, ctx: ExecutionContext) => Promise<Found>;
  /** If given, the result has a further column `fallback`, which is true from this row on. */
  readonly fallbackFrom?: number;
  /** Called with the number of rows whose lists are shorter than n. */
  readonly onEnd?: (short: number, ctx: ExecutionContext) => void;
}

/**
 * Lists of recommendations for a few rows, equal to the lists of `Recommend`, but found by a separate search
 * for each row.
 */
export class RecommendFew implements Source {
  readonly name = 'recommend-few';
  readonly replayable = true;
  readonly #sides: { readonly users: KeyColumn; readonly items: KeyColumn };
  readonly #options: FewOptions;

  constructor(sides: { readonly users: KeyColumn; readonly items: KeyColumn }, options: FewOptions) {
    this.#sides = sides;
    this.#options = options;
  }

  describe(): JsonObject {
    return { n: this.#options.n, rows: keyCount(this.#sides.users) };
  }

  async schema(): Promise<Schema> {
    const { columns, fallbackFrom } = this.#options;
    const schema = listSchema(this.#sides, columns);
    return fallbackFrom === undefined
      ? schema
      : new Schema([...schema.fields, new Field('fallback', new Bool(), false)]);
  }

  async execute(ctx: ExecutionContext): Promise<BatchStream> {
    const schema = await this.schema();
    return batchStream(schema, this.#lists(schema, ctx));
  }

  async *#lists(schema: Schema, ctx: ExecutionContext) {
    const { n, find, columns, fallbackFrom, onEnd } = this.#options;
    const rows = keyCount(this.#sides.users);
    const plain = listSchema(this.#sides, columns);
    let short = 0;
    for await (const { row, positions, scores } of mapOrdered(upTo(rows), AT_ONCE, async (row) => ({
      row,
      ...(await find(row, ctx)),
    }))) {
      if (positions.length < n) short++;
      if (positions.length === 0) continue;
      const items = new Uint32Array(n).fill(NO_ITEM);
      items.set(positions);
      const list = new Float32Array(n);
      list.set(scores);
      const batch = topBatch(plain, this.#sides, row, n, items, list);
      yield fallbackFrom === undefined ? batch : flagged(batch, schema, row >= fallbackFrom);
    }
    onEnd?.(short, ctx);
  }
}

async function* upTo(rows: number): AsyncGenerator<number> {
  for (let row = 0; row < rows; row++) yield row;
}

function flagged({ data, numRows }: RecordBatch, schema: Schema, fallback: boolean): RecordBatch {
  const bits = new Uint8Array(Math.ceil(numRows / 8)).fill(fallback ? 255 : 0);
  const column = makeData({ type: new Bool(), length: numRows, nullCount: 0, data: bits });
  return new RecordBatch(
    schema,
    makeData({
      type: new Struct<TypeMap>(schema.fields),
      length: numRows,
      nullCount: 0,
      children: [...data.children, column],
    }),
  );
}
