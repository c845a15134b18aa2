import { type Data, DataType } from 'apache-arrow';

/** The column of a union that has a row's value, and the value's position there. */
export function unionPlace(data: Data, row: number): { readonly child: number; readonly at: number } {
  const { type, typeIds, valueOffsets } = data;
  const isDense = DataType.isDenseUnion(type);
  const child = (type as unknown as { typeIds: Int32Array }).typeIds.indexOf(typeIds[row]);
  return { child, at: isDense ? valueOffsets[row] : row };
}
