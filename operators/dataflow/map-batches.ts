import { type RecordBatch, type Schema, Table, tableToIPC } from 'apache-arrow';
import { FactorFlowError, UsageError } from '../../engine/errors.ts';
import type { Json, JsonObject } from '../../engine/json.ts';
import { openIpc } from '../../engine/stream/read-ipc.ts';
import { type BatchStream, originOf, placeOf, setOrigin } from '../../engine/stream/stream.ts';
import { adoptBatch, shortColumn } from '../../engine/stream/whole-data.ts';
import { RowOperator } from './row-operator.ts';

/** A user's pure function. It returns the batch to replace a batch with, with any number of rows. */
export type BatchFunction = (batch: RecordBatch, args: never) => RecordBatch | Promise<RecordBatch>;

/** A function that each thread imports itself. */
export interface ModuleFunction {
  /** URL of the module that exports the function, such as `import.meta.url`. */
  readonly module: string;
  readonly name: string;
  /** Passed to the function with each batch, as plain JSON. */
  readonly args?: Json;
}

/**
 * Replaces each batch by the result of a user's function. `schema`: columns of the results; default: the
 * input's.
 */
export class MapBatches extends RowOperator {
  readonly name: string = 'map-batches';
  /** The method that users call, for messages. */
  protected readonly method: string = 'mapBatches';
  readonly #function: BatchFunction | ModuleFunction;
  readonly #schema: Schema | undefined;

  /** `schema` may be the bytes of an Arrow stream, as another thread gets it. */
  constructor(apply: BatchFunction | ModuleFunction, schema?: Schema | readonly number[]) {
    const columns = isBytes(schema) ? openIpc(Uint8Array.from(schema)).schema : schema;
    super(typeof apply === 'function' ? undefined : [apply, columns && [...tableToIPC(new Table(columns))]]);
    [this.#function, this.#schema] = [apply, columns];
  }

  describe(): JsonObject {
    const { name } = this.#function;
    return typeof this.#function === 'function'
      ? { closure: name || 'a function' }
      : { module: this.#function.module.split('/').at(-1) as string, name };
  }

  override outputSchema(input: Schema): Schema {
    return this.#schema ?? input;
  }

  override requiredColumns(): undefined {
    return undefined;
  }

  get #text(): string {
    const apply = this.#function;
    return typeof apply === 'function'
      ? `the function ${apply.name || `of ${this.method}`}`
      : `${apply.name} of ${apply.module}`;
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    const apply = await this.#imported();
    const args = (typeof this.#function === 'function' ? undefined : this.#function.args) as never;
    for await (const batch of input) {
      if (batch.numRows === 0) continue;
      const made = this.#checked(await this.called(apply, batch, args), schema);
      if (made.numRows === 0) continue;
      const origin = originOf(batch);
      // The origin holds the rows' lines in the file. If the number of rows is unchanged, the function is
      // assumed to have kept the rows.
      yield origin !== undefined && made.numRows === batch.numRows ? setOrigin(made, origin) : made;
    }
  }

  async #imported(): Promise<BatchFunction> {
    if (typeof this.#function === 'function') return this.#function;
    const { module, name } = this.#function;
    let exported: Readonly<Record<string, unknown>>;
    try {
      exported = (await import(module)) as typeof exported;
    } catch (cause) {
      throw new UsageError(`${this.method} cannot load ${module}: ${(cause as Error).message}`, { cause });
    }
    const found = exported[name];
    if (typeof found === 'function') return found as BatchFunction;
    throw new UsageError(`${this.method}: ${module} exports no function ${name}`, {
      advice: `It exports: ${Object.keys(exported).join(', ') || 'nothing'}`,
    });
  }

  protected async called(apply: BatchFunction, batch: RecordBatch, args: never): Promise<unknown> {
    try {
      return await apply(batch, args);
    } catch (cause) {
      if (cause instanceof FactorFlowError) throw cause;
      throw this.failed(cause, batch);
    }
  }

  /** The error of the user's function at a row of a batch, or at the batch. */
  protected failed(cause: unknown, batch: RecordBatch, at?: number): UsageError {
    const message = cause instanceof Error ? cause.message : String(cause);
    const { file, firstRow: row } = originOf(batch) ?? {};
    const place = at === undefined ? { file, row } : placeOf(batch, at);
    return new UsageError(`${this.method}: ${this.#text} failed: ${message}`, { ...place, cause });
  }

  /** The function's result, after checking that it has the declared columns. */
  #checked(made: unknown, schema: Schema): RecordBatch {
    const wrong = (text: string) => new UsageError(`${this.method}: ${this.#text} gave ${text}`);
    if (
      typeof made !== 'object' ||
      made === null ||
      !('schema' in made && 'data' in made && 'numRows' in made)
    )
      throw wrong('no record batch');
    if ('batches' in made) throw wrong('a table: return a record batch, such as one of its batches');
    const batch = made as RecordBatch;
    const [given, expected] = [batch.schema, schema].map(({ fields }) =>
      fields.map(({ name, type }) => `${name}: ${type}`).join(', '),
    );
    if (given !== expected)
      throw wrong(`the columns ${given}, not ${expected}: give the option schema where they change`);
    const whole = adoptBatch(batch, schema);
    const short = shortColumn(whole);
    if (short !== undefined) throw wrong(short);
    return whole;
  }
}

function isBytes(schema: Schema | readonly number[] | undefined): schema is readonly number[] {
  return Array.isArray(schema);
}
