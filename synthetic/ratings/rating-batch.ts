import { Field, Float32, Int32, Int64, makeData, RecordBatch, Schema } from 'apache-arrow';
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
  readonly capacity: number;
  rows = 0;
  #users: Int32Array;
  #items: Int32Array;
  #ratings: Float32Array;
  #times: BigInt64Array | undefined;

  /** `timed`: batches have the schema `timedSchema`. */
  constructor(capacity: number, timed = false) {
    this.capacity = capacity;
    this.#times = timed ? new BigInt64Array(capacity) : undefined;
    this.#users = new Int32Array(capacity);
    this.#items = new Int32Array(capacity);
    this.#ratings = new Float32Array(capacity);
  }

  get full(): boolean {
    return this.rows === this.capacity;
  }

  append(user: number, item: number, rating: number, time = 0): void {
    const row = this.rows++;
    this.#users[row] = user;
    this.#items[row] = item;
    this.#ratings[row] = rating;
    if (this.#times) this.#times[row] = BigInt(time);
  }

  /** The rows so far as a batch; the builder is empty afterwards. */
  take(): RecordBatch {
    const length = this.rows;
    const children = [
      makeData({ type: new Int32(), length, nullCount: 0, data: this.#users.subarray(0, length) }),
      makeData({ type: new Int32(), length, nullCount: 0, data: this.#items.subarray(0, length) }),
      makeData({ type: new Float32(), length, nullCount: 0, data: this.#ratings.subarray(0, length) }),
      ...(this.#times
        ? [makeData({ type: new Int64(), length, nullCount: 0, data: this.#times.subarray(0, length) })]
        : []),
    ];
    const schema = this.#times ? timedSchema : ratingSchema;
    this.rows = 0;
    this.#users = new Int32Array(this.capacity);
    this.#items = new Int32Array(this.capacity);
    this.#ratings = new Float32Array(this.capacity);
    if (this.#times) this.#times = new BigInt64Array(this.capacity);
    return batchOf(schema, length, children);
  }
}
