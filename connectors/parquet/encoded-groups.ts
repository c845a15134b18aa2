import {
  Binary,
  Field,
  Float64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Uint8,
} from 'apache-arrow';
import { openIpc } from '../../engine/stream/read-ipc.ts';

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
export function groupsSchema(rows: Schema): Schema {
  const written = Buffer.from(tableToIPC(new Table(rows))).toString('base64');
  return new Schema(fields, new Map([[ROWS, written]]));
}

/** Schema of the rows in a stream of groups; undefined for other streams. */
export function rowsSchema({ metadata }: Schema): Schema | undefined {
  const written = metadata.get(ROWS);
  return written === undefined ? undefined : openIpc(Buffer.from(written, 'base64')).schema;
}

export function batchOfGroup(schema: Schema, { rows, isEncoded, bytes }: EncodedGroup): RecordBatch {
  const children = [
    makeData({ type: new Float64(), data: Float64Array.of(rows) }),
    makeData({ type: new Uint8(), data: Uint8Array.of(isEncoded ? 1 : 0) }),
    makeData({ type: new Binary(), valueOffsets: Int32Array.of(0, bytes.length), data: bytes }),
  ];
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: 1, nullCount: 0, children }),
  );
}

export function groupOfBatch({ data: { children } }: RecordBatch): EncodedGroup {
  const [rows, encoded, { values, valueOffsets }] = children;
  return {
    rows: rows.values[0],
    isEncoded: encoded.values[0] === 1,
    bytes: values.subarray(valueOffsets[0], valueOffsets[1]),
  };
}
