import {
  type Data,
  DataType,
  Field,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  type TypeMap,
} from 'apache-arrow';
import { DataError } from '../../../engine/errors.ts';
import { counted } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { batchStream, type BatchStream, originOf, placeOf } from '../../../engine/stream/stream.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { fieldOf } from '../rows/columns.ts';

/** Rows {user, item, rating} of the lists {id, items, weights} of ListHistories. */
export class FlattenHistories implements Operator {
  readonly name = 'flatten-histories';

  describe(): JsonObject {
    return {};
  }

  outputSchema(input: Schema): Schema {
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

  requiredColumns(): readonly string[] {
    return ['id', 'items', 'weights'];
  }

  execute(input: BatchStream): BatchStream {
    const schema = this.outputSchema(input.schema);
    return batchStream(schema, flatRows(input, schema));
  }
}

async function* flatRows(input: BatchStream, schema: Schema) {
  for await (const batch of input) {
    const [id, items, weights] = ['id', 'items', 'weights'].map(
      (name) => batch.data.children[batch.schema.fields.findIndex((field) => field.name === name)],
    );
    const [item, rating] = [elementsOf(items), elementsOf(weights)];
    if ([id, items, weights, item, rating].some((one) => one.nullCount > 0))
      throw new DataError('a value of the histories is null', { phase: 'load', file: originOf(batch)?.file });
    requireSameLengths(batch, items, weights);
    if (item.length === 0) continue;
    const rows = new Uint32Array(item.length);
    const offsets = items.valueOffsets as Int32Array;
    for (let row = 0; row < batch.numRows; row++)
      rows.fill(row, offsets[row] - offsets[0], offsets[row + 1] - offsets[0]);
    const children = [takeData(id, rows), item, rating];
    const type = new Struct<TypeMap>(schema.fields);
    yield new RecordBatch(schema, makeData({ type, length: rows.length, nullCount: 0, children }));
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
