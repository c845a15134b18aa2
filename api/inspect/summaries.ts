import { type Data, DataType, type RecordBatch, type Schema } from 'apache-arrow';
import { check } from '../../engine/expressions/check.ts';
import { Evaluation } from '../../engine/expressions/evaluate.ts';
import { plainValues } from '../../engine/values/plain-values.ts';
import { isNumber, isTime, valueTypeOf } from '../../engine/expressions/types.ts';

export interface ColumnSummary {
  readonly column: string;
  readonly type: string;
  /** Number of values that are not null. */
  readonly count: number;
  readonly nulls: number;
  /** For numbers; NaN if a value is NaN. */
  readonly mean?: number;
  /** Sample standard deviation (divisor count - 1). */
  readonly stddev?: number;
  /** For numbers and text; absent without values. */
  readonly min?: number | string;
  readonly max?: number | string;
}

/** Accumulates summaries of columns over many batches. */
export class Summaries {
  readonly #columns: readonly Summary[];

  constructor(schema: Schema, names: readonly string[] = schema.fields.map(({ name }) => name)) {
    this.#columns = names.map((name) => new Summary(name, schema));
  }

  add(batch: RecordBatch): void {
    for (const column of this.#columns) column.add(batch);
  }

  get found(): ColumnSummary[] {
    return this.#columns.map((column) => column.found);
  }
}

class Summary {
  readonly #name: string;
  readonly #type: DataType;
  readonly #index: number;
  readonly #isNumber: boolean;
  #count = 0;
  #nulls = 0;
  #mean = 0;
  #squares = 0;
  #least: number | string | undefined;
  #most: number | string | undefined;

  constructor(name: string, schema: Schema) {
    const checked = check({ kind: 'column', name }, schema);
    if (checked.kind !== 'column') throw new Error(`${name} is not a column`);
    this.#name = name;
    this.#index = checked.index;
    this.#type = schema.fields[checked.index].type;
    const type = valueTypeOf(this.#type);
    this.#isNumber = isNumber(type) && !isTime(type);
  }

  add(batch: RecordBatch): void {
    const data = batch.data.children[this.#index];
    this.#nulls += data.nullCount;
    this.#count += batch.numRows - data.nullCount;
    if (this.#isNumber) this.#addNumbers(data, batch);
    else if (DataType.isUtf8(this.#type) || DataType.isDictionary(this.#type)) this.#addTexts(data);
  }

  /** Welford's algorithm, which is accurate for large means. */
  #addNumbers(data: Data, batch: RecordBatch): void {
    const cast = {
      kind: 'cast',
      value: { kind: 'column', name: this.#name },
      to: 'float64',
      onError: 'null',
    } as const;
    const { values } = new Evaluation(batch).values(check(cast, batch.schema)) as { values: Float64Array };
    let seen = this.#count - (batch.numRows - data.nullCount);
    for (let i = 0; i < batch.numRows; i++) {
      if (data.nullCount > 0 && !data.getValid(i)) continue;
      const value = values[i];
      const difference = value - this.#mean;
      this.#mean += difference / ++seen;
      this.#squares += difference * (value - this.#mean);
      this.#see(value);
    }
  }

  #addTexts(data: Data): void {
    const valueOf = plainValues(data);
    for (let row = 0; row < data.length; row++) {
      const value = valueOf(row);
      if (typeof value === 'string') this.#see(value);
    }
  }

  #see(value: number | string): void {
    if (this.#least === undefined || value < this.#least) this.#least = value;
    if (this.#most === undefined || value > this.#most) this.#most = value;
  }

  get found(): ColumnSummary {
    const bounds = { ...(this.#least !== undefined && { min: this.#least, max: this.#most }) };
    const numbers =
      this.#isNumber && this.#count > 0
        ? { mean: this.#mean, stddev: this.#count > 1 ? Math.sqrt(this.#squares / (this.#count - 1)) : 0 }
        : {};
    return {
      column: this.#name,
      type: String(this.#type),
      count: this.#count,
      nulls: this.#nulls,
      ...numbers,
      ...bounds,
    };
  }
}
