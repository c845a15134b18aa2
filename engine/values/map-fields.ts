import { DataType, type Field, FixedSizeList, LargeList, List, Map_, Struct } from 'apache-arrow';

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
