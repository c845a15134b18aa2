import { type Builder, Data, DataType, makeBuilder, type Utf8View, Vector } from 'apache-arrow';

type Numbers = Int32Array;

/**
 * Bytes of a text in a column of views: its length, then the bytes themselves or (first four, buffer,
 * offset).
 */
export const VIEW_BYTES = 16;

/**
 * The rows of a column at the given positions. Copies buffers, so that every value keeps all its bits, such
 * as nanoseconds, 38 digits and nested lists.
 */
export function takeData(data: Data, positions: Uint32Array): Data {
  const { type } = data;
  if (DataType.isUnion(type)) return takeByBuilder(data, positions);
  const validity = takeValidity(data, positions);
  const made = (buffers: { offsets?: Numbers; values?: Numbers | Uint8Array }, children: Data[] = []) =>
    new Data(
      type,
      0,
      positions.length,
      validity?.nullCount ?? 0,
      { 0: buffers.offsets, 1: buffers.values, 2: validity?.bitmap } as never,
      children,
      data.dictionary,
    );
  if (DataType.isNull(type)) return new Data(type, 0, positions.length, positions.length);
  if (DataType.isBool(type))
    return made({
      values: takeBits(positions, (row) => bitAt(data.values as Uint8Array, data.offset + row)),
    });
  if (DataType.isStruct(type))
    return made(
      {},
      data.children.map((child) => takeData(child, positions)),
    );
  if (DataType.isFixedSizeList(type))
    return made({}, [
      takeData(
        data.children[0],
        elementsOf(
          positions,
          (row) => row * type.listSize,
          () => type.listSize,
        ),
      ),
    ]);
  if (DataType.isUtf8View(type) || DataType.isBinaryView(type)) {
    const views = takeValues(data.values as Numbers, positions, VIEW_BYTES);
    return new Data(
      type,
      0,
      positions.length,
      validity?.nullCount ?? 0,
      { 1: views, 2: validity?.bitmap } as never,
      [],
      undefined,
      (data as Data<Utf8View>).variadicBuffers,
    );
  }
  const given = data.valueOffsets as Numbers | BigInt64Array | undefined;
  if (given === undefined)
    return made({ values: takeValues(data.values as Numbers, positions, data.stride) });

  const start = (row: number) => Number(given[row]);
  // The value behind a null is never read.
  const size = (row: number) =>
    validity === undefined || data.getValid(row) ? Number(given[row + 1]) - Number(given[row]) : 0;
  const offsets = offsetsOf(given, positions, size);
  if (data.children.length > 0)
    return made({ offsets }, [takeData(data.children[0], elementsOf(positions, start, size))]);
  const bytes = new Uint8Array(Number(offsets[positions.length]));
  for (let i = 0, at = 0; i < positions.length; at += size(positions[i++]))
    copyBytes(data.values as Uint8Array, start(positions[i]), size(positions[i]), bytes, at);
  return made({ offsets, values: bytes });
}

function takeValidity(
  data: Data,
  positions: Uint32Array,
): { bitmap: Uint8Array; nullCount: number } | undefined {
  if (data.nullCount === 0) return undefined;
  let nullCount = 0;
  for (let i = 0; i < positions.length; i++) if (!data.getValid(positions[i])) nullCount++;
  return { bitmap: takeBits(positions, (row) => data.getValid(row)), nullCount };
}

/** Copies a few bytes one by one, which is faster than a view for each text. */
export function copyBytes(from: Uint8Array, start: number, length: number, to: Uint8Array, at: number): void {
  if (length < 64) for (let i = 0; i < length; i++) to[at + i] = from[start + i];
  else to.set(from.subarray(start, start + length), at);
}

/** Values of `stride` array elements each. */
function takeValues(source: Numbers, positions: Uint32Array, stride: number): Numbers {
  const values = new (source.constructor as Int32ArrayConstructor)(positions.length * stride);
  if (stride === 1) for (let i = 0; i < positions.length; i++) values[i] = source[positions[i]];
  else
    for (let i = 0; i < positions.length; i++)
      values.set(source.subarray(positions[i] * stride, (positions[i] + 1) * stride), i * stride);
  return values;
}

function takeBits(positions: Uint32Array, bit: (row: number) => boolean): Uint8Array {
  const bits = new Uint8Array(Math.ceil(positions.length / 64) * 8);
  for (let i = 0; i < positions.length; i++) if (bit(positions[i])) bits[i >> 3] |= 1 << (i & 7);
  return bits;
}

function bitAt(bits: Uint8Array, position: number): boolean {
  return (bits[position >> 3] & (1 << (position & 7))) !== 0;
}

/** Offsets of the taken rows, as wide as the given ones. */
function offsetsOf(
  given: Numbers | BigInt64Array,
  positions: Uint32Array,
  size: (row: number) => number,
): Numbers {
  const offsets = new Float64Array(positions.length + 1);
  for (let i = 0; i < positions.length; i++) offsets[i + 1] = offsets[i] + size(positions[i]);
  return (
    given instanceof BigInt64Array ? BigInt64Array.from(offsets, BigInt) : Int32Array.from(offsets)
  ) as Numbers;
}

/** The positions of the elements of all taken rows. */
function elementsOf(
  positions: Uint32Array,
  start: (row: number) => number,
  size: (row: number) => number,
): Uint32Array {
  let count = 0;
  for (let i = 0; i < positions.length; i++) count += size(positions[i]);
  const elements = new Uint32Array(count);
  for (let i = 0, at = 0; i < positions.length; i++) {
    const end = at + size(positions[i]);
    for (let element = start(positions[i]); at < end;) elements[at++] = element++;
  }
  return elements;
}

/** Takes rows of unions value by value, with Arrow's builder. */
function takeByBuilder(data: Data, positions: Uint32Array): Data {
  const vector = new Vector([data]);
  const builder: Builder = makeBuilder({ type: data.type, nullValues: [null] });
  for (const position of positions) builder.append(vector.get(position));
  return builder.finish().flush();
}
