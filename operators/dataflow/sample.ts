import type { Data, RecordBatch, Schema } from 'apache-arrow';
import { DataType } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { check } from '../../engine/expressions/check.ts';
import { evaluate } from '../../engine/expressions/evaluate.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysFromData } from '../../engine/keys/arrow-keys.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import { mix32 } from '../../engine/random.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { takeRows } from './take-rows.ts';

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
export class Sample implements Operator {
  readonly name = 'sample';
  readonly isRowwise = true;
  readonly fraction: number;
  readonly #options: SampleOptions;

  constructor(fraction: number, options: SampleOptions) {
    this.fraction = fraction;
    this.#options = options;
  }

  static from({ fraction, seed, by }: ReturnType<Sample['portable']>): Sample {
    return new Sample(fraction, { seed, ...(by && { by }) });
  }

  describe(): JsonObject {
    const { seed, by } = this.#options;
    return { fraction: this.fraction, seed, ...(by && { by: [...by] }) };
  }

  portable() {
    const { seed, by } = this.#options;
    return { operator: 'sample', fraction: this.fraction, seed, ...(by && { by: [...by] }) } as const;
  }

  outputSchema(input: Schema): Schema {
    for (const name of this.#names(input)) check({ kind: 'column', name }, input);
    return input;
  }

  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    const { by } = this.#options;
    return wanted && by && [...new Set([...wanted, ...by])];
  }

  execute(input: BatchStream): BatchStream {
    return batchStream(input.schema, this.#keep(input));
  }

  #names(schema: Schema): readonly string[] {
    return this.#options.by ?? schema.fields.map(({ name }) => name);
  }

  async *#keep(input: BatchStream) {
    const names = this.#names(input.schema);
    const bound = Math.round(this.fraction * 2 ** 32);
    for await (const batch of input) {
      const hashes = new Uint32Array(batch.numRows).fill(this.#options.seed);
      for (const name of names) mixColumn(hashes, batch, name);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < hashes.length; i++) if (hashes[i] < bound) positions[kept++] = i;
      if (kept === batch.numRows) yield batch;
      else if (kept > 0) yield takeRows(batch, positions.subarray(0, kept));
    }
  }
}

/** Combines the hash of a column's values with the rows' hashes. */
function mixColumn(hashes: Uint32Array, batch: RecordBatch, name: string): void {
  const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === name)];
  const { low, high, step } = hashesOf(data, batch, name);
  for (let i = 0; i < hashes.length; i++) {
    const isNull = data.nullCount > 0 && !data.getValid(i);
    hashes[i] = mix32(mix32(hashes[i], isNull ? 0 : low[i * step]), isNull ? 1 : high[i * step]);
  }
}

/** Values as pairs of 32-bit halves; the halves of row i are at i * step. */
interface Halves {
  readonly low: Uint32Array;
  readonly high: Uint32Array;
  readonly step: 1 | 2;
}

function hashesOf(data: Data, batch: RecordBatch, name: string): Halves {
  const { type } = data;
  if (type.children?.length || DataType.isBinary(type))
    throw new UsageError(`sample cannot hash the column "${name}" of type ${type}`, {
      advice: "Name the columns that decide: sample(0.1, { by: ['user'] })",
    });
  const text = DataType.isInt(type) || DataType.isUtf8(type) || DataType.isLargeUtf8(type);
  if (text)
    return { ...keyHashes(keysFromData(data, DataType.isInt(type) ? 'int64' : 'utf8', () => {})), step: 1 };
  const { buffer, byteOffset, length } = float64s(data, batch, name);
  const halves = new Uint32Array(buffer, byteOffset, 2 * length);
  return { low: halves, high: halves.subarray(1), step: 2 };
}

/** The values as float64, whose bits are hashed. */
function float64s(data: Data, batch: RecordBatch, name: string): Float64Array {
  const raw: unknown = data.values;
  if (raw instanceof Float64Array) return raw;
  if (raw instanceof Float32Array) return new Float64Array(raw);
  const cast = { kind: 'cast', value: { kind: 'column', name }, to: 'float64', onError: 'null' } as const;
  return Float64Array.from(evaluate(check(cast, batch.schema), batch).values as Float64Array);
}
