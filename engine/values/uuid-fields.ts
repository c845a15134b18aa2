import { type Field, DataType, FixedSizeList, LargeList, List, Map_, Struct } from 'apache-arrow';
import { isUuid } from './value-texts.ts';

/** Keys of a field's metadata for types that Arrow's formats describe by another type. */
const [NAME, METADATA] = ['ARROW:extension:name', 'ARROW:extension:metadata'];
const UUID = 'arrow.uuid';

/** Arrow's canonical extension: 16 bytes that are a UUID, not a hash or the like. */
export function isUuidField({ type, metadata }: Pick<Field, 'type' | 'metadata'>): boolean {
  return isUuid(type) && metadata.get(NAME) === UUID;
}

export function uuidMetadata(): Map<string, string> {
  return new Map([
    [NAME, UUID],
    [METADATA, ''],
  ]);
}

/**
 * The field with each of its innermost fields changed, in depth-first order; the field itself if none is.
 */
export function mapInnermost(field: Field, change: (field: Field) => Field): Field {
  const { type } = field;
  const inner: Field[] = DataType.isDictionary(type) ? [] : (type.children ?? []);
  if (inner.length === 0) return change(field);
  const fields = inner.map((child) => mapInnermost(child, change));
  if (fields.every((child, i) => child === inner[i])) return field;
  return field.clone({ type: withFields(type, fields) });
}

function withFields(type: DataType, fields: Field[]): DataType {
  if (DataType.isStruct(type)) return new Struct(fields);
  if (DataType.isList(type)) return new List(fields[0]);
  if (DataType.isLargeList(type)) return new LargeList(fields[0]);
  if (DataType.isFixedSizeList(type)) return new FixedSizeList(type.listSize, fields[0]);
  return DataType.isMap(type) ? new Map_(fields[0] as never, type.keysSorted) : type;
}
