import { type Data, DataType } from 'apache-arrow';

/** Bytes of each value in arrays whose size depends only on the number of rows. */
export function fixedBytes(type: DataType): number {
  if (DataType.isNull(type)) return 0;
  if (DataType.isDictionary(type)) return type.indices.bitWidth / 8;
  if (DataType.isInt(type) || DataType.isDecimal(type) || DataType.isTime(type)) return type.bitWidth / 8;
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  if (DataType.isUtf8View(type) || DataType.isBinaryView(type)) return 16;
  if (DataType.isStruct(type)) return type.children.reduce((sum, field) => sum + fixedBytes(field.type), 0);
  if (DataType.isFixedSizeList(type)) return type.listSize * fixedBytes(type.children[0].type);
  if (DataType.isUtf8(type) || DataType.isBinary(type) || DataType.isList(type)) return 4;
  return 8;
}

/** True for types with values of variable size. */
export function isVariable(type: DataType): boolean {
  if (DataType.isStruct(type) || DataType.isFixedSizeList(type))
    return type.children.some((field) => isVariable(field.type));
  const isText = DataType.isUtf8(type) || DataType.isLargeUtf8(type);
  const isBytes = DataType.isBinary(type) || DataType.isLargeBinary(type);
  return isText || isBytes || DataType.isList(type) || DataType.isLargeList(type) || DataType.isMap(type);
}

/**
 * Bytes of text, binary and list values at some rows; list elements count with the mean size of their column.
 */
export function variableBytes(data: Data, rows: Uint32Array): number {
  const { type, children } = data;
  if (DataType.isStruct(type)) return children.reduce((sum, child) => sum + variableBytes(child, rows), 0);
  if (!isVariable(type)) return 0;
  if (DataType.isFixedSizeList(type)) return rows.length * type.listSize * meanBytes(children[0]);
  const offsets = data.valueOffsets as Int32Array | Float64Array | BigInt64Array;
  let elements = 0;
  for (let i = 0; i < rows.length; i++) elements += Number(offsets[rows[i] + 1]) - Number(offsets[rows[i]]);
  return children.length === 0 ? elements : elements * meanBytes(children[0]);
}

function meanBytes(data: Data): number {
  return data.length === 0 ? 0 : data.byteLength / data.length;
}
