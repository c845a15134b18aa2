import { DataType, type Field } from 'apache-arrow';
import { openIpc } from '../../../engine/stream/read-ipc.ts';
import { isUuidField } from '../../../engine/values/uuid-fields.ts';
import { decodeThrift, encodeThrift, integerIn, structsIn, thrift } from './thrift.ts';

/** Numbers of fields in parquet.thrift. */
const [SCHEMA, CHILDREN, LOGICAL_TYPE, UUID] = [2, 5, 10, 14];

/**
 * Marks a file's UUIDs as Parquet's logical type UUID; the encoder does not know Arrow's extension type. `rows`:
 * the encoded rows as an Arrow IPC stream.
 */
export function withUuids(file: Uint8Array, rows: Uint8Array): Uint8Array {
  const leaves = openIpc(rows).schema.fields.flatMap(leavesOf);
  if (!leaves.some(isUuidField)) return file;
  const end = file.length - 8;
  const length = new DataView(file.buffer, file.byteOffset + end, 4).getUint32(0, true);
  const footer = decodeThrift(file.subarray(end - length, end));
  const stored = structsIn(footer, SCHEMA).filter((element) => !integerIn(element, CHILDREN));
  for (const [i, element] of stored.entries())
    if (isUuidField(leaves[i])) element.set(LOGICAL_TYPE, thrift.struct({ [UUID]: thrift.struct({}) }));
  const bytes = encodeThrift(footer);
  const whole = new Uint8Array(end - length + bytes.length + 8);
  whole.set(file.subarray(0, end - length));
  whole.set(bytes, end - length);
  whole.set(file.subarray(end), whole.length - 8);
  new DataView(whole.buffer).setUint32(whole.length - 8, bytes.length, true);
  return whole;
}

/** The fields that have values, in Parquet's order. */
export function leavesOf(field: Field): Field[] {
  const type: DataType = field.type;
  if (DataType.isDictionary(type)) return [field];
  return type.children?.length ? type.children.flatMap(leavesOf) : [field];
}
