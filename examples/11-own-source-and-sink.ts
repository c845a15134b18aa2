/**
 * Your own source and your own sink: a source gives record batches to any data set, a sink makes a result of
 * all rows of one. Here ratings come from a formula, and the number of ratings of each item goes into a map.
 *
 *   npm run build && npx node examples/11-own-source-and-sink.ts
 */
import { type RecordBatch, Schema, Table, tableFromArrays } from 'factorflow/arrow';
import { type BatchStream, batchStream, col, Session, type Sink, type Source } from 'factorflow';

const USERS = 1000;

/** User u rates items u mod 7 and u mod 10, from 1 to 5. Each pass makes the rows anew. */
class MadeRatings implements Source {
  readonly name = 'made-ratings';
  /** The rows can be read any number of times. */
  readonly replayable = true;

  /** The parameters that a plan prints beside the name. */
  describe() {
    return { users: USERS };
  }

  /** The columns. Reads no rows. */
  async schema(): Promise<Schema> {
    return this.#rows(0, 0).schema;
  }

  /** Batches of 100 users, each made when it is pulled. */
  async execute(): Promise<BatchStream> {
    return batchStream(await this.schema(), this.#batches());
  }

  async *#batches(): AsyncGenerator<RecordBatch> {
    for (let from = 0; from < USERS; from += 100) yield* this.#rows(from, from + 100).batches;
  }

  #rows(from: number, to: number): Table {
    const users = Array.from({ length: to - from }, (_, i) => from + i);
    return tableFromArrays({
      user: Int32Array.from([...users, ...users]),
      item: Int32Array.from([...users.map((user) => user % 7), ...users.map((user) => user % 10)]),
      rating: Float32Array.from([...users, ...users], (user) => 1 + (user % 5)),
    });
  }
}

/** Counts the ratings of each item. */
class CountItems implements Sink<Map<number, number>> {
  readonly name = 'count-items';

  describe() {
    return {};
  }

  /** The columns that it needs, so that a source can leave out the rest. */
  requiredColumns() {
    return ['item'];
  }

  async consume(input: BatchStream): Promise<Map<number, number>> {
    const counts = new Map<number, number>();
    for await (const batch of input)
      for (const item of batch.getChild('item') ?? []) counts.set(item, (counts.get(item) ?? 0) + 1);
    return counts;
  }
}

const session = await Session.create();
const ratings = session.source(new MadeRatings());
const counts = await ratings.filter(col('rating').ge(4)).runInto(new CountItems());
const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, 3);
for (const [item, count] of most) console.log(`item ${item}: ${count} good ratings`);
await session.close();
