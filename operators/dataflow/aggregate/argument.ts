import { type Data, type DataType, type RecordBatch, type Schema } from 'apache-arrow';
import type { Checked } from '../../../engine/expressions/check.ts';
import { Evaluation, resultType } from '../../../engine/expressions/evaluate.ts';
import { readData, type StoredNumbers, storedNumbers } from '../../../engine/expressions/read.ts';
import type { Values } from '../../../engine/expressions/values.ts';
import { repeated, writeData } from '../../../engine/expressions/write.ts';
import { plainData, plainType } from '../../../engine/stream/plain-data.ts';

/**
 * Values of an aggregate's argument for the rows of one batch, in two forms: as the arrays that expressions
 * compute with (`values`), and as an Arrow column (`data`).
 */
export interface Argument {
  readonly rows: number;
  readonly values: Values;
  /** A column of numbers without the copy that `values` would make. */
  readonly stored: StoredNumbers | undefined;
  /** One byte a row, 0 for a null; undefined if there are no nulls. */
  readonly valid: Uint8Array | undefined;
  /** Decoded if it was a dictionary. */
  readonly data: Data;
}

/** Arrow type of an argument's data; a bare column keeps its type. */
export function argumentType(checked: Checked, input: Schema): DataType {
  return plainType(resultType(checked, input));
}

/** The arguments of a batch. Each column and expression is computed once. */
export class Arguments {
  readonly #evaluation: Evaluation;
  readonly #batch: RecordBatch;
  readonly #known = new Map<Checked, Argument>();

  constructor(batch: RecordBatch) {
    this.#batch = batch;
    this.#evaluation = new Evaluation(batch);
  }

  of(checked: Checked): Argument {
    const known = this.#known.get(checked) ?? this.#make(checked);
    this.#known.set(checked, known);
    return known;
  }

  #make(checked: Checked): Argument {
    const [evaluation, { numRows: rows, data: batch, schema }] = [this.#evaluation, this.#batch];
    let [values, data]: [Values?, Data?] = [];
    const stored = checked.kind === 'column' ? storedNumbers(batch.children[checked.index]) : undefined;
    return {
      rows,
      stored,
      get valid() {
        return stored ? stored.valid : this.values.valid;
      },
      get values() {
        if (values !== undefined) return values;
        const found = evaluation.values(checked);
        return (values = found.constant ? repeated(found, rows) : found);
      },
      get data() {
        return (data ??=
          checked.kind === 'column'
            ? plainData(batch.children[checked.index])
            : writeData(this.values, rows, resultType(checked, schema)));
      },
    };
  }
}

/** A stored column as an argument. */
export function argumentOf(data: Data): Argument {
  let values: Values | undefined;
  return {
    rows: data.length,
    data,
    stored: undefined,
    get valid() {
      return this.values.valid;
    },
    get values() {
      return (values ??= readData(data));
    },
  };
}
