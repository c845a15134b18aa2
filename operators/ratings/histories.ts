import { type Data, DataType, Field, Float32, List, makeData, RecordBatch, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { counted } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysFromData, keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { joinData } from '../../engine/stream/join-data.ts';
import { type BatchStream, originOf, placeOf } from '../../engine/stream/stream.ts';
import { takeData } from '../../engine/stream/take-data.ts';
import { batchOf, columnOf, RowOperator } from '../dataflow/row-operator.ts';
import { fieldOf } from './rows/columns.ts';

/** Ratings of a batch of lists, unless one user has more. */
const BATCH_RATINGS = 1 << 18;

const columns = ['user', 'item', 'rating'] as const;

/**
 * Makes one row {id, items: list, weights: list of float32} for each user. The input are rows {user, item,
 * rating} of SelectRatings, sorted by user and item. `last`: keeps only the last of several ratings of a pair.
 *
 *     1 7 4.0
 *     1 9 2.5     =>     1 [7, 9] [4.0, 2.5]
 *     3 7 5.0            3 [7]    [5.0]
 */
export class ListHistories extends RowOperator {
  readonly name = 'list-histories';
  readonly #last: boolean;

  constructor(last = false) {
    super();
    this.#last = last;
  }

  describe(): JsonObject {
    return { last: this.#last };
  }

  override outputSchema(input: Schema): Schema {
    return historiesSchema(fieldOf(input, 'user').type, fieldOf(input, 'item').type);
  }

  override requiredColumns(): readonly string[] {
    return columns;
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    let held: Data[][] = [];
    let [rows, wanted] = [0, BATCH_RATINGS];
    for await (const batch of input) {
      held.push(columns.map((name) => columnOf(batch, name)));
      rows += batch.numRows;
      if (rows < wanted) continue;
      const joined = joinRows(held);
      // The last user may have more rows in the next batch.
      const users = keysOf(joined[0]);
      let end = rows - 1;
      while (end > 0 && isSame(users, end)) end--;
      if (end > 0) yield this.#listed(joined, 0, end, schema);
      const rest = Uint32Array.from({ length: rows - end }, (_, row) => end + row);
      held = [joined.map((data) => takeData(data, rest))];
      rows -= end;
      wanted = Math.max(BATCH_RATINGS, 2 * rows);
    }
    if (rows > 0) yield this.#listed(joinRows(held), 0, rows, schema);
  }

  #listed([user, item, rating]: readonly Data[], from: number, to: number, schema: Schema): RecordBatch {
    const [users, items] = [keysOf(user), keysOf(item)];
    const first = new Uint32Array(to - from);
    const kept = new Uint32Array(to - from);
    const offsets = new Int32Array(to - from + 1);
    let [lists, ratings] = [0, 0];
    for (let row = from; row < to; row++) {
      const isNew = row === from || !isSame(users, row);
      if (isNew) {
        offsets[lists] = ratings;
        first[lists++] = row;
      }
      if (!isNew && this.#last && isSame(items, row)) kept[ratings - 1] = row;
      else kept[ratings++] = row;
    }
    offsets[lists] = ratings;
    const list = (at: number, data: Data) =>
      makeData({
        type: schema.fields[at].type as List,
        length: lists,
        nullCount: 0,
        valueOffsets: offsets.subarray(0, lists + 1),
        child: takeData(data, kept.subarray(0, ratings)),
      });
    const children = [takeData(user, first.subarray(0, lists)), list(1, item), list(2, rating)];
    return batchOf(schema, lists, children);
  }
}

/** The columns of lists. */
function historiesSchema(user: Field['type'], item: Field['type']): Schema {
  return new Schema([
    new Field('id', user, false),
    new Field('items', new List(new Field('item', item, false)), false),
    new Field('weights', new List(new Field('weight', new Float32(), false)), false),
  ]);
}

function joinRows(held: readonly Data[][]): Data[] {
  return held.length === 1
    ? held[0]
    : columns.map((_, at) =>
        joinData(
          held[0][at].type,
          held.map((rows) => rows[at]),
        ),
      );
}

function keysOf(data: Data): KeyColumn {
  return keysFromData(data, keyTypeOf(data.type, 'id'));
}

/** True if a row has the key of the row before. */
function isSame(keys: KeyColumn, row: number): boolean {
  if (keys.type === 'int32') return keys.values[row] === keys.values[row - 1];
  if (keys.type === 'int64') {
    const { halves } = keys;
    return halves[2 * row] === halves[2 * row - 2] && halves[2 * row + 1] === halves[2 * row - 1];
  }
  const { offsets, bytes } = keys;
  const [before, start, end] = [offsets[row - 1], offsets[row], offsets[row + 1]];
  if (start - before !== end - start) return false;
  for (let at = 0; at < end - start; at++) if (bytes[before + at] !== bytes[start + at]) return false;
  return true;
}

/** Rows {user, item, rating} of the lists {id, items, weights} of ListHistories. */
export class FlattenHistories extends RowOperator {
  readonly name = 'flatten-histories';

  describe(): JsonObject {
    return {};
  }

  override outputSchema(input: Schema): Schema {
    const [id, items, weights] = ['id', 'items', 'weights'].map((name) => fieldOf(input, name).type);
    if (!DataType.isList(items) || !DataType.isList(weights) || !DataType.isFloat(weights.valueType))
      throw new DataError(
        `these are not histories: need id, items (list) and weights (list of float), have ${input.fields.join(', ')}`,
        { phase: 'load' },
      );
    return new Schema([
      new Field('user', id, false),
      new Field('item', items.valueType, false),
      new Field('rating', weights.valueType, false),
    ]);
  }

  override requiredColumns(): readonly string[] {
    return ['id', 'items', 'weights'];
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    for await (const batch of input) {
      const [id, items, weights] = ['id', 'items', 'weights'].map((name) => columnOf(batch, name));
      const [item, rating] = [elementsOf(items), elementsOf(weights)];
      if ([id, items, weights, item, rating].some((one) => one.nullCount > 0))
        throw new DataError('a value of the histories is null', {
          phase: 'load',
          file: originOf(batch)?.file,
        });
      requireSameLengths(batch, items, weights);
      if (item.length === 0) continue;
      const rows = new Uint32Array(item.length);
      const offsets = items.valueOffsets as Int32Array;
      for (let row = 0; row < batch.numRows; row++)
        rows.fill(row, offsets[row] - offsets[0], offsets[row + 1] - offsets[0]);
      const children = [takeData(id, rows), item, rating];
      yield batchOf(schema, rows.length, children);
    }
  }
}

function requireSameLengths(batch: RecordBatch, items: Data, weights: Data): void {
  const ends = [items, weights].map(({ valueOffsets }) => valueOffsets as Int32Array);
  for (let row = 0; row < batch.numRows; row++) {
    const [itemCount, weightCount] = ends.map((offsets) => offsets[row + 1] - offsets[row]);
    if (itemCount === weightCount) continue;
    const { file, row: ofFile } = placeOf(batch, row) ?? { row };
    throw new DataError(`a list of ${counted(itemCount, 'item')} has ${counted(weightCount, 'weight')}`, {
      phase: 'load',
      file,
      row: ofFile,
      advice: 'Save or copy the model again',
    });
  }
}

/** The elements of a column of lists. */
function elementsOf({ valueOffsets, length, children }: Data): Data {
  const [first, end] = [valueOffsets[0], valueOffsets[length]] as [number, number];
  return children[0].slice(first, end - first);
}
