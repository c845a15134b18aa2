import { DataType, type Field } from 'apache-arrow';
import { wordsOfType } from '../../engine/keys/row-words.ts';

/** Estimated bytes of a value of variable length, with its offset. */
const TEXT_BYTES = 24;

/** Estimated bytes of a row in memory. */
export function rowBytes({ fields }: { readonly fields: readonly Field[] }): number {
  return fields.reduce((sum, { type }) => sum + valueBytes(type), 0);
}

function valueBytes(type: DataType): number {
  if (DataType.isDictionary(type)) return valueBytes(type.indices);
  if (DataType.isBool(type)) return 1;
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  if (DataType.isStruct(type)) return rowBytes({ fields: type.children });
  if (DataType.isFixedSizeList(type)) return type.listSize * valueBytes(type.children[0].type);
  return 4 * wordsOfType(type) || TEXT_BYTES;
}
