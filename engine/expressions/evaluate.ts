import type { Data, DataType, RecordBatch, Schema } from 'apache-arrow';
import { DataError } from '../errors.ts';
import { placeOf, type RowPlace } from '../stream/stream.ts';
import { castValues, textAt } from './cast.ts';
import type { Checked } from './check.ts';
import { choose } from './functions/conditional.ts';
import { apply } from './functions/table.ts';
import { print } from './print.ts';
import { readData, type StoredNumbers, storedNumbers } from './read.ts';
import { arrowTypeOf } from './types.ts';
import { withScratch } from './scratch.ts';
import { maskOf, nulls, type Values } from './values.ts';
import { writeData } from './write.ts';

/** The Arrow type of an expression's values; a bare column keeps its own. */
export function resultType(checked: Checked, schema: Schema): DataType {
  return checked.kind === 'column'
    ? schema.fields[checked.index].type
    : (checked.arrow ?? arrowTypeOf(checked.type));
}

/**
 * The values of an expression for each row of a batch; throws DataError that names the row of a failed cast.
 */
export function evaluate(checked: Checked, batch: RecordBatch): Data {
  if (checked.kind === 'column') return batch.data.children[checked.index];
  const type = resultType(checked, batch.schema);
  return withScratch(() => writeData(new Evaluation(batch).values(checked), batch.numRows, type));
}

/**
 * The values of several expressions. A column that several of them use is read once. A subexpression that is
 * written in two of them is computed twice.
 */
export function evaluateAll(columns: readonly Checked[], batch: RecordBatch): Data[] {
  const evaluation = new Evaluation(batch);
  return withScratch(() =>
    columns.map((column) =>
      column.kind === 'column'
        ? batch.data.children[column.index]
        : writeData(evaluation.values(column), batch.numRows, resultType(column, batch.schema)),
    ),
  );
}

/**
 * Computes expressions over one batch. Each column is read once. The values of a part are kept by its node,
 * so that the same node is computed once; equal parts at two places are two nodes. Values for only some of
 * the rows (`active`) are not kept.
 */
export class Evaluation {
  readonly batch: RecordBatch;
  readonly #columns = new Map<number, Values>();
  readonly #parts = new Map<Checked, Values>();

  constructor(batch: RecordBatch) {
    this.batch = batch;
  }

  /**
   * Computes the values of a part. `active`: 1 for rows whose values matter; a failure in another row is
   * ignored. Default: all rows matter.
   */
  values(node: Checked, active?: Uint8Array): Values {
    if (node.kind === 'constant') return node.values;
    if (node.kind === 'column') return this.#column(node.index);
    if (active !== undefined) return this.#compute(node, active);
    const values = this.#parts.get(node) ?? this.#compute(node);
    this.#parts.set(node, values);
    return values;
  }

  /**
   * The numbers of a column as they are stored, without conversion; undefined if that is not a form of
   * PlainNumbers.
   */
  stored(node: Checked): StoredNumbers | undefined {
    return node.kind === 'column' ? storedNumbers(this.batch.data.children[node.index]) : undefined;
  }

  #compute(node: Exclude<Checked, { kind: 'constant' | 'column' }>, active?: Uint8Array): Values {
    switch (node.kind) {
      case 'cast':
        return this.#cast(node, active);
      case 'call':
        return this.#call(node, active);
      default:
        return this.#when(node, active);
    }
  }

  #column(index: number): Values {
    const { schema, data } = this.batch;
    const refuse = (row: number, reason: string) => {
      throw new DataError(reason, { ...this.#placeOf(row), column: schema.fields[index].name });
    };
    const values = this.#columns.get(index) ?? readData(data.children[index], refuse);
    this.#columns.set(index, values);
    return values;
  }

  #call(node: Checked & { kind: 'call' }, active?: Uint8Array): Values {
    const { name, spec, args } = node;
    const first = this.values(args[0], active);
    const isLazy = (name === 'and' || name === 'or') && args[1].mayFail;
    const needed = isLazy ? this.#undecided(first, name === 'or' ? 1 : 0, active) : active;
    const rest = args.slice(1).map((arg) => this.values(arg, needed));
    const fail = (row: number, message: string) => this.#fail(node, row, message, active);
    return apply(spec, node, [first, ...rest], { length: this.batch.numRows, fail });
  }

  /**
   * Marks the rows whose result the left side leaves open, so that the right side must be evaluated. A left
   * side equal to `decides` (0 for `and`, 1 for `or`) is the result.
   */
  #undecided(left: Values, decides: 0 | 1, active: Uint8Array | undefined): Uint8Array {
    const undecided = active?.slice() ?? new Uint8Array(this.batch.numRows).fill(1);
    if (left.form !== 'bool') return undecided;
    const mask = maskOf(left);
    for (let i = 0; i < undecided.length; i++) {
      const known = left.valid === undefined || left.valid[i & mask] === 1;
      if (known && left.values[i & mask] === decides) undecided[i] = 0;
    }
    return undecided;
  }

  #cast(node: Checked & { kind: 'cast' }, active?: Uint8Array): Values {
    const given = this.values(node.value, active);
    const { values, failed } = castValues(given, node.type);
    if (failed === undefined || !failed.includes(1)) return values;
    const valid = given.valid?.slice() ?? new Uint8Array(given.length).fill(1);
    for (let i = 0; i < failed.length; i++) {
      if (failed[i] === 0 || valid[i] === 0) continue;
      if (node.onError === 'error') this.#fail(node, i, `'${textAt(given, i)}' is no ${node.type}`, active);
      valid[i] = 0;
    }
    return { ...values, valid };
  }

  #when(node: Checked & { kind: 'when' }, active?: Uint8Array): Values {
    const { type, branches, otherwise } = node;
    const length = this.batch.numRows;
    const pick = new Int32Array(length).fill(-1);
    branches.forEach(({ when }, k) => {
      const condition = this.values(when, when.mayFail ? picked(pick, -1, active) : undefined);
      if (condition.form !== 'bool') return;
      const [mask, { values, valid }] = [maskOf(condition), condition];
      for (let i = 0; i < length; i++) {
        const isTrue = values[i & mask] === 1 && (valid === undefined || valid[i & mask] === 1);
        if (isTrue && pick[i] === -1) pick[i] = k;
      }
    });
    for (let i = 0; i < length; i++) if (pick[i] === -1) pick[i] = branches.length;
    const results = [...branches.map(({ value }) => value), otherwise].map((result, k) =>
      this.values(result, result.mayFail ? picked(pick, k, active) : undefined),
    );
    if (results.every(({ form }) => form === 'opaque')) return nulls(type, length, false);
    return choose(pick, results, { type, length, constant: false });
  }

  #fail(node: Checked, row: number, message: string, active: Uint8Array | undefined): void {
    if (active !== undefined && active[row] === 0) return;
    throw new DataError(`${print(node.source)}: ${message}`, this.#placeOf(row));
  }

  #placeOf(row: number): Pick<RowPlace, 'file' | 'rowGroup' | 'row' | 'line'> {
    const { file, rowGroup, row: ofFile, line } = placeOf(this.batch, row) ?? { row };
    return { file, rowGroup, row: ofFile, line };
  }
}

/** The rows of branch k among the active ones. */
function picked(pick: Int32Array, k: number, active: Uint8Array | undefined): Uint8Array {
  return Uint8Array.from(pick, (own, i) => (own === k ? (active?.[i] ?? 1) : 0));
}
