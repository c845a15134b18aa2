import {
  Binary,
  Field,
  Float64,
  makeData,
  RecordBatch,
  Schema,
  Table,
  tableToIPC,
  Uint8,
  type Data,
} from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { openIpc } from '../../engine/stream/read-ipc.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';
import type { WritingContext } from '../output/checked-sink.ts';
import { RowEncoder } from '../output/row-encoder.ts';
import type { Codec } from './backend.ts';

export type RowGroupOptions = {
  readonly codec: Codec;
  readonly dictionary: boolean;
  /** Most rows of a row group. */
  readonly rowGroupSize: number;
  /** Most rows of a file; null for one file. */
  readonly rowsPerPart: number | null;
  /** Name of the output in errors. */
  readonly file: string;
};

/**
 * If the last rows of a task are fewer than 1 / SMALL_SHARE of a row group, the task returns them unencoded,
 * and the sink joins them with the last rows of other tasks.
 */
const SMALL_SHARE = 4;

/**
 * Encodes rows as Parquet, one row group at a time. It is the last operator of a pipeline, so the task that
 * reads rows also encodes them. If rows come as one stream in the calling thread, the session's threads
 * encode groups in parallel. A group ends early when a file has reached its number of rows. The bytes of a
 * group depend only on its rows.
 */
export class EncodeRowGroups implements Operator {
  readonly name = ENCODE_ROW_GROUPS;
  readonly options: RowGroupOptions;

  constructor(options: RowGroupOptions) {
    this.options = options;
  }

  static from({ options }: ReturnType<EncodeRowGroups['portable']>): EncodeRowGroups {
    return new EncodeRowGroups(options);
  }

  describe(): JsonObject {
    return { codec: this.options.codec };
  }

  portable() {
    return { operator: ENCODE_ROW_GROUPS, options: this.options } as const;
  }

  outputSchema(input: Schema): Schema {
    return groupsSchema(input);
  }

  requiredColumns(): undefined {
    return undefined;
  }

  execute(input: BatchStream, ctx: WritingContext): BatchStream {
    const schema = groupsSchema(input.schema);
    return batchStream(schema, this.#encode(input, schema, ctx));
  }

  async *#encode(input: BatchStream, schema: Schema, ctx: WritingContext): AsyncGenerator<RecordBatch> {
    const encoder = new RowEncoder(ctx);
    try {
      const groups = this.#groups(input, encoder.isHere, ctx);
      const encoded = mapOrdered(groups, encoder.atOnce, (group) => this.#encoded(group, encoder));
      for await (const group of encoded) yield batchOfGroup(schema, group);
    } finally {
      await encoder.close();
    }
  }

  async #encoded({ rows, isSmall }: Group, encoder: RowEncoder): Promise<EncodedGroup> {
    const { codec, dictionary, file } = this.options;
    const count = rows.rows;
    if (isSmall) return { rows: count, isEncoded: false, bytes: rows.takeShared() };
    const bytes = await encoder.encode(rows, { format: 'parquet', codec, dictionary, file }, 0);
    return { rows: count, isEncoded: true, bytes };
  }

  /** Cuts the stream into groups. `copies`: copy the batches, since their memory is reused. */
  async *#groups(input: BatchStream, copies: boolean, { signal }: WritingContext): AsyncGenerator<Group> {
    const groups = new RowGroups(input.schema, copies, this.options);
    for await (const batch of input) {
      throwIfAborted(signal, 'write');
      for (const rows of groups.add(batch)) yield { rows, isSmall: false };
    }
    const { rest } = groups;
    if (rest !== undefined)
      yield { rows: rest, isSmall: copies && rest.rows * SMALL_SHARE < this.options.rowGroupSize };
  }
}

/** Cuts rows into row groups, which end early when a file has reached its number of rows. */
export class RowGroups {
  /** The rows after the last whole group. */
  rest: RowStream | undefined;
  readonly #schema: Schema;
  readonly #copies: boolean;
  readonly #rowGroupSize: number;
  readonly #mostInPart: number;
  #inPart = 0;
  #bytes = 0;

  constructor(
    schema: Schema,
    copies: boolean,
    { rowGroupSize, rowsPerPart }: Pick<RowGroupOptions, 'rowGroupSize' | 'rowsPerPart'>,
  ) {
    [this.#schema, this.#copies, this.#rowGroupSize] = [schema, copies, rowGroupSize];
    this.#mostInPart = rowsPerPart ?? Infinity;
  }

  /** The groups that a batch completes. */
  *add(batch: RecordBatch): Generator<RowStream> {
    for (let start = 0; start < batch.numRows;) {
      const group = (this.rest ??= new RowStream(this.#schema, this.#copies));
      const most = Math.min(this.#rowGroupSize, this.#mostInPart - this.#inPart);
      const end = Math.min(batch.numRows, start + most - group.rows);
      const rows = end - start === batch.numRows ? batch : batch.slice(start, end);
      group.add(rows);
      this.#bytes += dataBytes(rows.data);
      start = end;
      if (group.rows < most && this.#bytes < LARGEST_ROW_GROUP) continue;
      this.#inPart = (this.#inPart + group.rows) % this.#mostInPart;
      [this.rest, this.#bytes] = [undefined, 0];
      yield group;
    }
  }
}

interface Group {
  readonly rows: RowStream;
  readonly isSmall: boolean;
}

/** Name of the operator that makes these streams. */
export const ENCODE_ROW_GROUPS = 'encode-row-groups';

/** Rows on their way to a file: a Parquet file of one row group, or, for few rows, an Arrow stream. */
export interface EncodedGroup {
  readonly rows: number;
  readonly isEncoded: boolean;
  readonly bytes: Uint8Array;
}

/** Key of the encoded rows' schema in the metadata of the schema of groups. */
const ROWS = 'factorflow.encoded-rows';
const fields = [
  new Field('rows', new Float64(), false),
  new Field('encoded', new Uint8(), false),
  new Field('bytes', new Binary(), false),
];

/** Schema of a stream of groups, one group a batch. Its metadata contain the schema of the rows. */
function groupsSchema(rows: Schema): Schema {
  const written = Buffer.from(tableToIPC(new Table(rows))).toString('base64');
  return new Schema(fields, new Map([[ROWS, written]]));
}

/** Schema of the rows in a stream of groups; undefined for other streams. */
export function rowsSchema({ metadata }: Schema): Schema | undefined {
  const written = metadata.get(ROWS);
  return written === undefined ? undefined : openIpc(Buffer.from(written, 'base64')).schema;
}

function batchOfGroup(schema: Schema, { rows, isEncoded, bytes }: EncodedGroup): RecordBatch {
  const children = [
    makeData({ type: new Float64(), data: Float64Array.of(rows) }),
    makeData({ type: new Uint8(), data: Uint8Array.of(isEncoded ? 1 : 0) }),
    makeData({ type: new Binary(), valueOffsets: Int32Array.of(0, bytes.length), data: bytes }),
  ];
  return batchOf(schema, 1, children);
}

export function groupOfBatch({ data: { children } }: RecordBatch): EncodedGroup {
  const [rows, encoded, { values, valueOffsets }] = children;
  return {
    rows: rows.values[0],
    isEncoded: encoded.values[0] === 1,
    bytes: values.subarray(valueOffsets[0], valueOffsets[1]),
  };
}

/**
 * Bytes of rows, in Arrow's layout, at which a row group ends before it has all its rows: the whole group is
 * encoded in memory.
 */
export const LARGEST_ROW_GROUP = 64 * 2 ** 20;

/**
 * Bytes of a column's rows. Of text and lists only these rows count, although a slice shares the whole
 * buffer.
 */
export function dataBytes({ length, valueOffsets, values, children, stride }: Data): number {
  const below = children.reduce((sum, child) => sum + dataBytes(child), 0);
  if (!(valueOffsets?.length > 0)) return below + (values?.BYTES_PER_ELEMENT ?? 0) * length * stride;
  const span = Number(valueOffsets[length]) - Number(valueOffsets[0]);
  return (
    valueOffsets.BYTES_PER_ELEMENT * length +
    (children.length === 0 ? span : (below * span) / Math.max(1, children[0].length))
  );
}
