import { DataType, type Schema } from 'apache-arrow';

/** Bytes of a value whose length is not known, with its offset. */
const TEXT_BYTES = 24;

/** Bytes of a row in memory, about. */
export function rowBytes({ fields }: Schema): number {
  return fields.reduce((sum, { type }) => sum + valueBytes(type), 0);
}

function valueBytes(type: DataType): number {
  if (DataType.isNull(type)) return 0;
  if (DataType.isBool(type)) return 1 / 8;
  if (DataType.isDictionary(type)) return type.indices.bitWidth / 8;
  if (DataType.isInt(type) || DataType.isTime(type) || DataType.isDecimal(type)) return type.bitWidth / 8;
  if (DataType.isFloat(type)) return [2, 4, 8][type.precision];
  if (DataType.isDate(type)) return type.unit === 0 ? 4 : 8;
  if (DataType.isTimestamp(type) || DataType.isDuration(type)) return 8;
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  if (DataType.isStruct(type) || DataType.isFixedSizeList(type)) {
    const one = type.children.reduce((sum, child) => sum + valueBytes(child.type), 0);
    return DataType.isFixedSizeList(type) ? one * type.listSize : one;
  }
  return TEXT_BYTES;
}
