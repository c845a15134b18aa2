import { type Data, Field, Float32, Int32, Int64, makeData, type RecordBatch, Schema } from 'apache-arrow';
import { batchOf } from '../../engine/stream/whole-data.ts';

/** The columns of generated ratings, without nulls. */
export const ratingSchema = new Schema([
  new Field('user', new Int32(), false),
  new Field('item', new Int32(), false),
  new Field('rating', new Float32(), false),
]);

/** The same plus the time of each rating, in seconds since 1970. */
export const timedSchema = new Schema([...ratingSchema.fields, new Field('timestamp', new Int64(), false)]);

/** A builder of consecutive batches of at most `capacity` rows. Each batch has its own arrays. */
export class RatingBatchBuilder {
  readonly #capacity: number;
  readonly #timed: boolean;
  rows = 0;
  #columns: ReturnType<typeof newColumns>;

  /** `timed`: batches have the schema `timedSchema`. */
  constructor(capacity: number, timed: boolean) {
    [this.#capacity, this.#timed] = [capacity, timed];
    this.#columns = newColumns(capacity, timed);
  }

  get isFull(): boolean {
    return this.rows === this.#capacity;
  }

  append(user: number, item: number, rating: number, time: number): void {
    const row = this.rows++;
    const { users, items, ratings, times } = this.#columns;
    users[row] = user;
    items[row] = item;
    ratings[row] = rating;
    if (times) times[row] = BigInt(time);
  }

  /** The rows so far as a batch; the builder is empty afterwards. */
  take(): RecordBatch {
    const [length, nullCount] = [this.rows, 0];
    const { users, items, ratings, times } = this.#columns;
    const children: Data[] = [
      makeData({ type: new Int32(), length, nullCount, data: users.subarray(0, length) }),
      makeData({ type: new Int32(), length, nullCount, data: items.subarray(0, length) }),
      makeData({ type: new Float32(), length, nullCount, data: ratings.subarray(0, length) }),
    ];
    if (times)
      children.push(makeData({ type: new Int64(), length, nullCount, data: times.subarray(0, length) }));
    this.rows = 0;
    this.#columns = newColumns(this.#capacity, this.#timed);
    return batchOf(times ? timedSchema : ratingSchema, length, children);
  }
}

function newColumns(capacity: number, timed: boolean) {
  return {
    users: new Int32Array(capacity),
    items: new Int32Array(capacity),
    ratings: new Float32Array(capacity),
    times: timed ? new BigInt64Array(capacity) : undefined,
  };
}
