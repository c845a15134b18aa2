import { Field, Float32, Int32, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';

/** The columns of generated ratings, without nulls. */
export const ratingSchema = new Schema([
  new Field('user', new Int32(), false),
  new Field('item', new Int32(), false),
  new Field('rating', new Float32(), false),
]);

const rowType = new Struct(ratingSchema.fields);

/** A builder of batches of at most `capacity` rows, one after the other. Each batch has arrays of its own. */
export class RatingBatchBuilder {
  readonly capacity: number;
  rows = 0;
  #users: Int32Array;
  #items: Int32Array;
  #ratings: Float32Array;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#users = new Int32Array(capacity);
    this.#items = new Int32Array(capacity);
    this.#ratings = new Float32Array(capacity);
  }

  get full(): boolean {
    return this.rows === this.capacity;
  }

  append(user: number, item: number, rating: number): void {
    const row = this.rows++;
    this.#users[row] = user;
    this.#items[row] = item;
    this.#ratings[row] = rating;
  }

  /** The rows so far as a batch; the builder is empty afterwards. */
  take(): RecordBatch {
    const length = this.rows;
    const children = [
      makeData({ type: new Int32(), length, nullCount: 0, data: this.#users.subarray(0, length) }),
      makeData({ type: new Int32(), length, nullCount: 0, data: this.#items.subarray(0, length) }),
      makeData({ type: new Float32(), length, nullCount: 0, data: this.#ratings.subarray(0, length) }),
    ];
    this.rows = 0;
    this.#users = new Int32Array(this.capacity);
    this.#items = new Int32Array(this.capacity);
    this.#ratings = new Float32Array(this.capacity);
    return new RecordBatch(ratingSchema, makeData({ type: rowType, length, nullCount: 0, children }));
  }
}
