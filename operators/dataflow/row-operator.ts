import { type Data, makeData, RecordBatch, type Schema, Struct, type TypeMap } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { Json, JsonObject } from '../../engine/json.ts';
import { nearest, spelled } from '../../engine/nearest.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Operator, PortableOperator } from '../../engine/stream/operator.ts';
import {
  batchStream,
  type BatchStream,
  originOf,
  setOrigin,
  setTakenOrigin,
} from '../../engine/stream/stream.ts';
import { takeData } from '../../engine/stream/take-data.ts';

/**
 * Base of the operators on rows. Unless a class overrides them, the output has the columns of the input, and
 * the operator needs the columns that are wanted of it and those that it reads.
 */
export abstract class RowOperator implements Operator {
  abstract readonly name: string;
  readonly #args: readonly unknown[] | undefined;

  /** `args`: the constructor's arguments, from which a thread makes the operator again; see `portable`. */
  constructor(args?: readonly unknown[]) {
    this.#args = args;
  }

  get portable(): (() => PortableOperator) | undefined {
    const args = this.#args as readonly Json[] | undefined;
    return args && (() => ({ operator: this.name, args }));
  }

  abstract describe(): JsonObject;

  /** The batches of the output, which has the columns of `schema`. */
  protected abstract batches(
    input: BatchStream,
    schema: Schema,
    ctx: ExecutionContext,
  ): AsyncIterable<RecordBatch>;

  /** Columns whose values decide about rows; undefined: all columns. */
  protected readColumns(): readonly string[] | undefined {
    return [];
  }

  outputSchema(input: Schema): Schema {
    return input;
  }

  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    const read = this.readColumns();
    return wanted && read && [...new Set([...wanted, ...read])];
  }

  execute(input: BatchStream, ctx: ExecutionContext): BatchStream {
    const schema = this.outputSchema(input.schema);
    return batchStream(schema, this.batches(input, schema, ctx));
  }
}

/** Base of the operators that keep some rows of each batch. */
export abstract class RowFilter extends RowOperator {
  /**
   * Returns the function that finds the rows of a batch to keep: their positions, ascending; undefined for all
   * rows.
   */
  protected abstract selection(input: Schema): (batch: RecordBatch) => Uint32Array | undefined;

  protected async *batches(input: BatchStream): AsyncGenerator<RecordBatch> {
    const select = this.selection(input.schema);
    for await (const batch of input) {
      const positions = select(batch);
      if (positions === undefined || positions.length === batch.numRows) yield batch;
      else if (positions.length > 0) yield takeRows(batch, positions);
    }
  }
}

/** A batch of columns. */
export function batchOf(schema: Schema, length: number, children: Data[]): RecordBatch {
  const type = new Struct<TypeMap>(schema.fields);
  return new RecordBatch(schema, makeData({ type, length, nullCount: 0, children }));
}

/** A column of a batch. */
export function columnOf({ schema, data }: RecordBatch, name: string): Data {
  return data.children[schema.fields.findIndex((field) => field.name === name)];
}

/** The rows of a batch at the given positions, in that order, with all columns, nulls and origins. */
export function takeRows(batch: RecordBatch, positions: Uint32Array): RecordBatch {
  const children = batch.data.children.map((data) => takeData(data, positions));
  return setTakenOrigin(batchOf(batch.schema, positions.length, children), batch, positions);
}

/** A batch with the same rows and origin, but other columns. */
export function sameRows(batch: RecordBatch, schema: Schema, children: Data[]): RecordBatch {
  const made = batchOf(schema, batch.numRows, children);
  const origin = originOf(batch);
  return origin === undefined ? made : setOrigin(made, origin);
}

/** The columns of a batch that a schema names, in its order. */
export function columnsAs(batch: RecordBatch, schema: Schema): RecordBatch {
  const children = schema.fields.map(({ name }) => columnOf(batch, name));
  return sameRows(batch, schema, children);
}

/** The position of a column among the names; `purpose` completes the error "there is no column ...". */
export function columnAt(name: string, names: readonly string[], purpose: string): number {
  if (typeof name !== 'string')
    throw new UsageError(`the name of a column is a text, got ${shown(name)} ${purpose}`);
  const position = names.indexOf(name);
  if (position >= 0) return position;
  throw new UsageError(`there is no column "${name}" ${purpose}`, {
    advice: spelled(nearest(name, names), `The columns are: ${names.join(', ') || 'none'}`),
  });
}
