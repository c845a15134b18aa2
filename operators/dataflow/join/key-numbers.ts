import { type Data, DataType, type Field, type RecordBatch, type Schema } from 'apache-arrow';
import { hasNulls, isNullAt } from '../../../engine/keys/arrow-keys.ts';
import { RowNumbers, UNKNOWN_ROW } from '../../../engine/keys/row-numbers.ts';
import { takeData } from '../../../engine/stream/take-data.ts';

/**
 * Assigns numbers to the keys of rows. A row with a null key gets none, since a null equals no other value.
 */
export class KeyNumbers {
  readonly #numbers: RowNumbers;

  constructor(schema: Schema, keys: readonly string[]) {
    this.#numbers = new RowNumbers(keys.map((name) => fieldOf(schema, name)));
  }

  /** Number of distinct keys. */
  get size(): number {
    return this.#numbers.size;
  }

  /** Number of each row's key, assigned if the key is new; UNKNOWN_ROW for a null. */
  add(keys: readonly Data[], rows: number): Uint32Array {
    const nullable = keys.filter((data) => DataType.isNull(data.type) || hasNulls(data));
    if (nullable.length === 0) return this.#numbers.add(keys, rows);
    const whole = wholeRows(nullable, rows);
    const taken = keys.map((data) => takeData(data, whole));
    const own = this.#numbers.add(taken, whole.length);
    const codes = new Uint32Array(rows).fill(UNKNOWN_ROW);
    for (let i = 0; i < whole.length; i++) codes[whole[i]] = own[i];
    return codes;
  }

  /** Number of each row's key if it was added before, else UNKNOWN_ROW. */
  find(batch: RecordBatch, names: readonly string[]): Uint32Array {
    return this.#numbers.find(
      names.map((name) => columnOf(batch, name)),
      batch.numRows,
    );
  }
}

/** Positions of the rows without a null. */
function wholeRows(columns: readonly Data[], rows: number): Uint32Array {
  const isNull = new Uint8Array(rows);
  for (const data of columns) {
    if (DataType.isNull(data.type)) isNull.fill(1);
    else for (let row = 0; row < rows; row++) if (isNullAt(data, row)) isNull[row] = 1;
  }
  const whole = new Uint32Array(rows);
  let count = 0;
  for (let row = 0; row < rows; row++) if (isNull[row] === 0) whole[count++] = row;
  return whole.subarray(0, count);
}

export function fieldOf({ fields }: Schema, name: string): Field {
  return fields.find((field) => field.name === name) as Field;
}

export function columnOf({ schema, data }: RecordBatch, name: string): Data {
  return data.children[schema.fields.findIndex((field) => field.name === name)];
}
