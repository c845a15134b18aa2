import { type Data, DataType, type RecordBatch, type Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { check } from '../../engine/expressions/check.ts';
import { floatsOf } from '../../engine/expressions/decimals.ts';
import { readData } from '../../engine/expressions/read.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysFromData } from '../../engine/keys/arrow-keys.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import { mix32 } from '../../engine/random.ts';
import { plainData } from '../../engine/stream/dictionary-values.ts';
import { isUuid } from '../../engine/values/value-texts.ts';
import { columnOf, RowFilter } from './row-operator.ts';

export interface SampleOptions {
  readonly seed: number;
  /** Columns whose values are hashed; default: all. */
  readonly by?: readonly string[];
}

/**
 * Keeps a fraction of the rows: those whose hash of the columns `by` and the seed, scaled to [0, 1), is below
 * it. Rows with equal values are kept or removed together, and the sample does not depend on the order of
 * rows.
 */
export class Sample extends RowFilter {
  readonly name = 'sample';
  readonly isRowwise = true;
  readonly fraction: number;
  readonly #options: SampleOptions;

  constructor(fraction: number, options: SampleOptions) {
    super([fraction, options]);
    this.fraction = fraction;
    this.#options = options;
  }

  describe(): JsonObject {
    const { seed, by } = this.#options;
    return { fraction: this.fraction, seed, ...(by && { by: [...by] }) };
  }

  override outputSchema(input: Schema): Schema {
    for (const name of this.#names(input)) check({ kind: 'column', name }, input);
    return input;
  }

  protected override readColumns(): readonly string[] | undefined {
    return this.#options.by;
  }

  #names(schema: Schema): readonly string[] {
    return this.#options.by ?? schema.fields.map(({ name }) => name);
  }

  protected selection(input: Schema) {
    const names = this.#names(input);
    const bound = Math.round(this.fraction * 2 ** 32);
    return (batch: RecordBatch) => {
      const hashes = new Uint32Array(batch.numRows).fill(this.#options.seed);
      for (const name of names) mixColumn(hashes, batch, name);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < hashes.length; i++) if (hashes[i] < bound) positions[kept++] = i;
      return positions.subarray(0, kept);
    };
  }
}

/** Combines the hash of a column's values with the rows' hashes. */
function mixColumn(hashes: Uint32Array, batch: RecordBatch, name: string): void {
  const data = plainData(columnOf(batch, name));
  const isNullColumn = DataType.isNull(data.type);
  const { low, high, step } = isNullColumn ? noHalves : hashesOf(data, name);
  for (let i = 0; i < hashes.length; i++) {
    const isNull = isNullColumn || (data.nullCount > 0 && !data.getValid(i));
    hashes[i] = mix32(mix32(hashes[i], isNull ? 0 : low[i * step]), isNull ? 1 : high[i * step]);
  }
}

/** Values as pairs of 32-bit halves; the halves of row i are at i * step. */
interface Halves {
  readonly low: Uint32Array;
  readonly high: Uint32Array;
  readonly step: 1 | 2;
}

const noHalves: Halves = { low: new Uint32Array(0), high: new Uint32Array(0), step: 1 };

function hashesOf(data: Data, name: string): Halves {
  const { type } = data;
  const keys = keysOf(data);
  if (keys !== undefined) return { ...keyHashes(keys), step: 1 };
  const column = readData(data);
  if (column.form === 'opaque')
    throw new UsageError(`sample cannot hash the column "${name}" of type ${type}`, {
      advice: "Name the columns that decide: sample(0.1, { by: ['user'] })",
    });
  // The bits of the numbers as float64.
  const { buffer, byteOffset, length } = floatsOf(column).slice();
  const halves = new Uint32Array(buffer, byteOffset, 2 * length);
  return { low: halves, high: halves.subarray(1), step: 2 };
}

/** Integers, texts and bytes, and the stored integers of times; undefined for other types. */
function keysOf(data: Data): KeyColumn | undefined {
  const { type, length, values, stride } = data;
  if (DataType.isInt(type)) return keysFromData(data, 'int64');
  if (isHashedAsBytes(type) || isUuid(type)) return keysFromData(data, 'utf8');
  if (
    DataType.isTimestamp(type) ||
    DataType.isDate(type) ||
    DataType.isTime(type) ||
    DataType.isDuration(type)
  ) {
    const { buffer, byteOffset, BYTES_PER_ELEMENT } = values as unknown as Int32Array;
    const words = new Int32Array(buffer, byteOffset, (length * BYTES_PER_ELEMENT) / 4);
    return BYTES_PER_ELEMENT === 4 ? { type: 'int32', values: words } : { type: 'int64', halves: words };
  }
  if (!DataType.isFixedSizeBinary(type) && !DataType.isInterval(type)) return undefined;
  const { buffer, byteOffset, BYTES_PER_ELEMENT } = values as unknown as Int32Array;
  const width = stride * BYTES_PER_ELEMENT;
  const offsets = Int32Array.from({ length: length + 1 }, (_, row) => row * width);
  return { type: 'utf8', offsets, bytes: new Uint8Array(buffer, byteOffset, length * width) };
}

function isHashedAsBytes(type: DataType): boolean {
  const { isUtf8, isLargeUtf8, isBinary, isLargeBinary } = DataType;
  return [isUtf8, isLargeUtf8, isBinary, isLargeBinary].some((is) => is(type));
}
