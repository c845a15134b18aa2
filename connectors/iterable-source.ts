import { DataType, RecordBatch, Table, util, type Schema } from 'apache-arrow';
import { DataError, throwIfAborted, UsageError } from '../engine/errors.ts';
import { shown, counted } from '../engine/format.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import type { Source, ValueNeeds } from '../engine/stream/operator.ts';
import { batchStream, originOf, setOrigin, type BatchStream } from '../engine/stream/stream.ts';
import { shortColumn } from '../engine/stream/whole-data.ts';
import { closeAtAbort } from '../engine/waits.ts';

type Batches = AsyncIterable<RecordBatch> | Iterable<RecordBatch>;

/**
 * Record batches of an iterable as a Source. An array can be read repeatedly. Other iterables can be read
 * once, unless `replayable` says that each iteration starts anew. Without a schema, the schema of the first
 * batch is used.
 */
export function iterableSource(
  batches: Batches,
  schema?: Schema,
  options: { readonly replayable?: boolean } = {},
): IterableSource {
  return new IterableSource(batches, schema, options.replayable ?? Array.isArray(batches));
}

/** An iterator whose first batch was read to find the schema. */
interface Begun {
  readonly iterator: AsyncIterator<RecordBatch> | Iterator<RecordBatch>;
  readonly first: IteratorResult<RecordBatch>;
  /** Closes the iterator if the run that needs the schema is cancelled. */
  readonly closing: Disposable;
}

/** The source that `iterableSource` returns. */
export class IterableSource implements Source {
  readonly name = 'iterable-source';
  readonly phase = 'read';
  readonly replayable: boolean;
  readonly #batches: Batches;
  #given: Schema | undefined;
  #used = false;
  /** The iterator and its first batch, if the batch was needed for the schema. */
  #begun: Begun | undefined;

  constructor(batches: Batches, schema: Schema | undefined, replayable: boolean) {
    this.#batches = batches;
    this.#given = schema;
    this.replayable = replayable;
  }

  describe() {
    return { replayable: this.replayable };
  }

  async schema(_needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
    if (this.#given !== undefined) return this.#given;
    this.#requireUnread();
    const begun = await this.#begin(signal);
    if (begun.first.done) {
      throw new DataError('the source gave no batch, so its columns are unknown', {
        phase: 'read',
        advice: 'Also pass the schema of the batches',
      });
    }
    this.#given = requireBatch(begun.first.value, 0).schema;
    if (this.replayable) {
      begun.closing[Symbol.dispose]();
      await begun.iterator.return?.();
    } else {
      this.#begun = begun;
    }
    return this.#given;
  }

  async execute(ctx: Pick<ExecutionContext, 'signal'>): Promise<BatchStream> {
    this.#requireUnread();
    const schema = await this.schema(undefined, ctx.signal);
    this.#requireUnread();
    this.#used = true;
    const begun = this.#begun;
    this.#begun = undefined;
    return batchStream(schema, this.#run(schema, ctx.signal, begun));
  }

  #requireUnread(): void {
    if (!this.#used || this.replayable) return;
    throw new UsageError('this source can be read only once, and it was read already', {
      phase: 'read',
      advice: 'Pass an array of batches, or { replayable: true } when each iteration starts anew',
    });
  }

  async #begin(signal: AbortSignal | undefined): Promise<Begun> {
    if (
      Object(this.#batches) !== this.#batches ||
      !(Symbol.asyncIterator in this.#batches || Symbol.iterator in this.#batches)
    ) {
      throw new UsageError(`the source is not an iterable of record batches: ${shown(this.#batches)}`, {
        phase: 'read',
        advice: 'Pass an array, a generator or a stream of batches',
      });
    }
    const iterator =
      Symbol.asyncIterator in this.#batches
        ? this.#batches[Symbol.asyncIterator]()
        : this.#batches[Symbol.iterator]();
    const closing = closeAtAbort(iterator, signal, () => {
      this.#begun = undefined;
      this.#used = true;
    });
    return { iterator, first: await iterator.next(), closing };
  }

  async *#run(schema: Schema, signal: AbortSignal, begun: Begun | undefined): AsyncGenerator<RecordBatch> {
    const { iterator, first, closing } = begun ?? (await this.#begin(signal));
    closing[Symbol.dispose]();
    let finished = false;
    let firstRow = 0;
    try {
      let result = first;
      for (let number = 0; !result.done; number++) {
        throwIfAborted(signal, 'read');
        const batch = conform(result.value, schema, number);
        if (originOf(batch) === undefined) setOrigin(batch, { firstRow });
        // Empty batches are skipped: Arrow may have allocated no memory for their columns.
        if (batch.numRows > 0) yield batch;
        firstRow += batch.numRows;
        result = await iterator.next();
      }
      finished = true;
    } finally {
      if (!finished) await iterator.return?.();
    }
  }
}

/**
 * The batch with the stream's schema. Throws DataError that names the batch and the column if the batch has
 * another schema.
 */
function conform(given: unknown, schema: Schema, number: number): RecordBatch {
  const batch = requireBatch(given, number);
  const { fields } = batch.schema;
  if (sameSchema(batch.schema, schema)) return batch;
  if (fields.length !== schema.fields.length) {
    throw new DataError(
      `batch ${number} has ${counted(fields.length, 'column')}, the schema ${schema.fields.length}`,
      { phase: 'read' },
    );
  }
  for (const [index, { name, type }] of schema.fields.entries()) {
    const field = fields[index];
    if (field.name !== name || !sameType(field.type, type)) {
      throw new DataError(
        `batch ${number} has column "${field.name}" of ${String(field.type)} where the schema has "${name}" of ${String(type)}`,
        { phase: 'read', column: name },
      );
    }
  }
  return new RecordBatch(schema, batch.data);
}

function requireBatch(batch: unknown, number: number): RecordBatch {
  const short = batch instanceof RecordBatch ? shortColumn(batch) : undefined;
  if (short !== undefined)
    throw new DataError(`batch ${number} of the source is ${short}`, { phase: 'read' });
  if (batch instanceof RecordBatch) return batch;
  throw new DataError(`batch ${number} of the source is not a RecordBatch`, {
    phase: 'read',
    advice: adviceFor(batch),
  });
}

function adviceFor(value: unknown): string {
  if (value instanceof Table) return 'Yield the batches of the table: table.batches';
  const isBatch = typeof value === 'object' && value !== null && 'schema' in value && 'numRows' in value;
  return isBatch
    ? 'It is of another copy of apache-arrow. Import from factorflow/arrow, the copy that FactorFlow uses'
    : 'Yield record batches; session.fromRows takes plain objects';
}

/**
 * True for equal types. Of dictionaries only the types of keys and values are compared, since each batch has
 * its own dictionary.
 */
function sameType(a: DataType, b: DataType): boolean {
  if (DataType.isDictionary(a) && DataType.isDictionary(b))
    return util.compareTypes(a.indices, b.indices) && util.compareTypes(a.dictionary, b.dictionary);
  return util.compareTypes(a, b);
}

function sameSchema(a: Schema, b: Schema): boolean {
  return a === b || util.compareSchemas(a, b);
}
