import { Data, DataType } from 'apache-arrow';

/** Columns of one type as one, by their bytes. Throws an Error for types whose values are nested. */
export function joinData(parts: readonly Data[]): Data {
  if (parts.length === 1) return parts[0];
  const { type } = parts[0];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const nullCount = parts.reduce((sum, part) => sum + part.nullCount, 0);
  const bitmap = nullCount === 0 ? undefined : joinBits(parts, length, (part, row) => part.getValid(row));
  const made = (offsets: Int32Array | undefined, values: ArrayBufferView) =>
    new Data(type, 0, length, nullCount, { 0: offsets, 1: values, 2: bitmap } as never);
  if (DataType.isNull(type)) return new Data(type, 0, length, length);
  if (DataType.isBool(type))
    return made(
      undefined,
      joinBits(
        parts,
        length,
        (part, row) =>
          ((part.values as Uint8Array)[(part.offset + row) >> 3] & (1 << ((part.offset + row) & 7))) !== 0,
      ),
    );
  if (DataType.isUtf8(type) || DataType.isBinary(type)) {
    const offsets = new Int32Array(length + 1);
    let row = 0;
    for (const { valueOffsets, length: rows } of parts)
      for (let i = 0; i < rows; i++, row++)
        offsets[row + 1] = offsets[row] + valueOffsets[i + 1] - valueOffsets[i];
    return made(
      offsets,
      joinValues(
        parts.map(({ values, valueOffsets, length: rows }) =>
          (values as Uint8Array).subarray(valueOffsets[0] ?? 0, valueOffsets[rows] ?? 0),
        ),
      ),
    );
  }
  if (parts[0].children.length > 0 || parts[0].valueOffsets !== undefined || parts[0].values === undefined)
    throw new Error(`values of type ${String(type)} cannot be joined`);
  return made(
    undefined,
    joinValues(
      parts.map(({ values, length: rows, stride }) => (values as Int32Array).subarray(0, rows * stride)),
    ),
  );
}

function joinBits(
  parts: readonly Data[],
  length: number,
  bit: (part: Data, row: number) => boolean,
): Uint8Array {
  const bits = new Uint8Array(((length + 63) >> 6) << 3);
  let at = 0;
  for (const part of parts)
    for (let row = 0; row < part.length; row++, at++) if (bit(part, row)) bits[at >> 3] |= 1 << (at & 7);
  return bits;
}

function joinValues(parts: readonly (Uint8Array | Int32Array)[]): Uint8Array | Int32Array {
  const all = new (parts[0].constructor as Int32ArrayConstructor)(
    parts.reduce((sum, part) => sum + part.length, 0),
  );
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
