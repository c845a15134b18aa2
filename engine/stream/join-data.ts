import { Data, DataType, type Dictionary, Vector } from 'apache-arrow';
import { CapacityError } from '../errors.ts';
import { RowNumbers } from '../keys/row-numbers.ts';
import { copyBits, makeBits, setBits, VIEW_BYTES, unionPlace, takeData } from './take-data.ts';

type Values = Uint8Array | Int32Array;
type Offsets = Int32Array | Float64Array | BigInt64Array;

const LARGEST_OFFSET = 2 ** 31 - 1;

interface Joined {
  readonly parts: readonly Data[];
  /** Number of rows with `nulls` null rows at the end. */
  readonly length: number;
  readonly nulls: number;
}

/**
 * Joins columns of one type by copying bytes, then appends `nulls` null rows. If texts or lists exceed 2 GiB,
 * offsets are doubles, which only `takeData` accepts.
 */
export function joinData(type: DataType, parts: readonly Data[], nulls = 0): Data {
  return parts.length === 1 && nulls === 0 ? parts[0] : copyData(type, parts, nulls);
}

/** Like joinData; a single part is copied, too, and the result has no offset. */
export function copyData(type: DataType, parts: readonly Data[], nulls = 0): Data {
  const length = parts.reduce((sum, part) => sum + part.length, nulls);
  if (DataType.isNull(type)) return new Data(type, 0, length, length);
  const joined: Joined = { parts, length, nulls };
  if (DataType.isUnion(type)) return joinUnions(type, joined);
  const nullCount = parts.reduce((sum, part) => sum + part.nullCount, nulls);
  const validity =
    nullCount === 0
      ? undefined
      : joinBits(joined, (part) => (part.nullCount === 0 ? undefined : part.nullBitmap));
  const { offsets, values, children, dictionary, views } = buffersOf(type, joined);
  return new Data(
    type,
    0,
    length,
    nullCount,
    { 0: offsets, 1: values, 2: validity } as never,
    children,
    dictionary,
    views,
  );
}

export function nullData(type: DataType, length: number): Data {
  return joinData(type, [], length);
}

interface Buffers {
  readonly offsets?: Offsets;
  readonly values?: Values | BigInt64Array;
  readonly children?: Data[];
  readonly dictionary?: Vector;
  readonly views?: readonly Uint8Array[];
}

function buffersOf(type: DataType, joined: Joined): Buffers {
  const { parts, nulls } = joined;
  if (DataType.isBool(type)) return { values: joinBits(joined, (part) => part.values as Uint8Array) };
  if (DataType.isDictionary(type)) return joinCodes(type, joined);
  if (DataType.isUtf8View(type) || DataType.isBinaryView(type)) return joinViews(joined);
  if (DataType.isStruct(type) || DataType.isFixedSizeList(type)) {
    const stride = DataType.isStruct(type) ? 1 : type.listSize;
    const children = type.children.map((field, i) =>
      joinData(
        field.type,
        parts.map((part) => sliced(part.children[i], 0, stride * part.length)),
        stride * nulls,
      ),
    );
    return { children };
  }
  const isLarge = DataType.isLargeUtf8(type) || DataType.isLargeBinary(type);
  if (isLarge || DataType.isUtf8(type) || DataType.isBinary(type))
    return {
      offsets: joinOffsets(joined, isLarge),
      values: joinValues(
        parts.map((part) => (part.values ?? new Uint8Array(0)).subarray(...rangeOf(part))),
        Uint8Array,
      ),
    };
  if (DataType.isList(type) || DataType.isMap(type) || DataType.isLargeList(type)) {
    const [field] = type.children;
    const children = parts.map((part) => {
      const [from, to] = rangeOf(part);
      return sliced(part.children[0], from, to);
    });
    const offsets = joinOffsets(joined, DataType.isLargeList(type));
    return { offsets, children: [joinData(field.type, children)] };
  }
  return { values: joinPlain(type, joined, type.ArrayType as ArrayConstructorOf) };
}

type ArrayConstructorOf = Int32ArrayConstructor | Uint8ArrayConstructor;

/** Rows [from, to) of a column; the column itself if that is all of it. */
function sliced(data: Data, from: number, to: number): Data {
  return from === 0 && to === data.length ? data : data.slice(from, to - from);
}

/** The range of elements or bytes that the rows of a column with offsets use. */
function rangeOf({ valueOffsets, length }: Data): [number, number] {
  return [Number(valueOffsets?.[0] ?? 0), Number(valueOffsets?.[length] ?? 0)];
}

function joinOffsets({ parts, length }: Joined, large: boolean): Offsets {
  const total = parts.reduce((sum, part) => {
    const [from, to] = rangeOf(part);
    return sum + to - from;
  }, 0);
  const offsets = large || total > LARGEST_OFFSET ? new Float64Array(length + 1) : new Int32Array(length + 1);
  let [row, at] = [0, 0];
  for (const part of parts) {
    const given = part.valueOffsets as Offsets;
    const [from, to] = rangeOf(part);
    for (let i = 0; i < part.length; i++) offsets[row++] = at + (Number(given[i]) - from);
    at += to - from;
  }
  offsets.fill(at, row);
  return large ? BigInt64Array.from(offsets, BigInt) : offsets;
}

/** Joins bits of all parts; a part without bits has ones. */
function joinBits({ parts, length }: Joined, bitsOf: (part: Data) => Uint8Array | undefined): Uint8Array {
  const bits = makeBits(length);
  let at = 0;
  for (const part of parts) {
    const own = part.length === 0 ? undefined : bitsOf(part);
    if (own === undefined) setBits(bits, at, part.length);
    else copyBits(own, part.offset, { bits, at }, part.length);
    at += part.length;
  }
  return bits;
}

/** Joins values of a fixed number of array elements each. */
function joinPlain(type: DataType, { parts, nulls }: Joined, fallback: ArrayConstructorOf): Values {
  const { stride } = new Data(type, 0, 0);
  const values = parts
    .filter((part) => part.values !== undefined)
    .map((part) => (part.values as Values).subarray(0, part.length * stride));
  return joinValues(values, fallback, nulls * stride);
}

/** The elements of all parts, then `more` zeros. */
function joinValues(parts: readonly Values[], fallback: ArrayConstructorOf, more = 0): Values {
  const make = (parts.find(({ length }) => length > 0)?.constructor ?? fallback) as Int32ArrayConstructor;
  const all = new make(parts.reduce((sum, part) => sum + part.length, more));
  let at = 0;
  for (const part of parts) {
    if (part.length > 0) all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Joins columns of codes under one dictionary that has the entries of all parts' dictionaries. */
function joinCodes(type: Dictionary, { parts, nulls }: Joined): Buffers {
  const filled = parts.filter(({ length, dictionary }) => length > 0 && dictionary !== undefined);
  const fallback = type.indices.ArrayType as ArrayConstructorOf;
  if (filled.length === 0)
    return { values: new fallback(nulls), dictionary: new Vector([nullData(type.dictionary, 0)]) };
  const { codes, dictionary } = joinDictionaries(filled);
  return { values: joinValues(codes, fallback, nulls), dictionary };
}

/** Views of more than 12 bytes refer to one of their column's buffers by index. */
function joinViews(joined: Joined): Buffers {
  const bytes = new Uint8Array(joined.length * VIEW_BYTES);
  const words = new Int32Array(bytes.buffer);
  const views: Uint8Array[] = [];
  let row = 0;
  for (const part of joined.parts) {
    const own = (part.values ?? new Uint8Array(0)) as Uint8Array;
    bytes.set(own.subarray(0, part.length * VIEW_BYTES), row * VIEW_BYTES);
    const end = row + part.length;
    for (; row < end; row++) if (words[4 * row] > 12) words[4 * row + 2] += views.length;
    views.push(...part.variadicBuffers);
  }
  return { values: bytes, views };
}

/** Joins unions; a null is a null of the first column. */
function joinUnions(type: DataType, { parts, length, nulls }: Joined): Data {
  const isDense = DataType.isDenseUnion(type);
  const ids = new Int8Array(length).fill((type as unknown as { typeIds: Int32Array }).typeIds[0]);
  const offsets = isDense ? new Int32Array(length) : undefined;
  const starts = type.children.map(() => 0);
  let row = 0;
  for (const part of parts) {
    ids.set(part.typeIds.subarray(0, part.length), row);
    for (let i = 0; i < part.length; i++) {
      const { child, at } = unionPlace(part, i);
      if (offsets !== undefined) offsets[row + i] = starts[child] + at;
    }
    part.children.forEach((child, i) => void (starts[i] += child.length));
    row += part.length;
  }
  offsets?.fill(starts[0], row);
  const children = type.children.map((field, i) => {
    const own = parts.map((part) => (isDense ? part.children[i] : sliced(part.children[i], 0, part.length)));
    return joinData(field.type, own, isDense ? Math.min(nulls, i === 0 ? 1 : 0) : nulls);
  });
  return new Data(type, 0, length, 0, { 0: offsets, 3: ids } as never, children);
}

/**
 * Gives several dictionary columns one common dictionary, and returns it with the new codes of each column.
 * The common dictionary has each value once, unless all columns already share one.
 */
export function joinDictionaries(parts: readonly Data[]): {
  readonly codes: readonly Int32Array[];
  readonly dictionary: Vector;
} {
  const given = parts.map((part) => part.dictionary as Vector);
  const { dictionary: type } = parts[0].type as Dictionary;
  const longest = given.reduce((a, b) => (b.data.length > a.data.length ? b : a));
  // Within a stream a dictionary only grows, by chunks.
  if (given.every(({ data }) => data.every((chunk, i) => chunk === longest.data[i])))
    return { codes: parts.map((part) => part.values.subarray(0, part.length)), dictionary: longest };

  const numbers = new RowNumbers([{ name: 'dictionary', type }]);
  const numbersOf = new Map<Vector, Uint32Array>();
  const chunks: Data[] = [];
  for (const dictionary of new Set(given)) {
    const values = joinData(type, dictionary.data);
    const before = numbers.size;
    const own = numbers.add([values], values.length);
    numbersOf.set(dictionary, own);
    chunks.push(takeData(values, firstRows(own, before, numbers.size)));
  }
  requireRoom(parts[0].type as Dictionary, numbers.size);
  return {
    codes: parts.map((part) => codesOf(part, numbersOf.get(part.dictionary as Vector) as Uint32Array)),
    dictionary: new Vector([joinData(type, chunks)]),
  };
}

/** The first row of each number in [before, end). */
function firstRows(numbers: Uint32Array, before: number, end: number): Uint32Array {
  const rows = new Uint32Array(end - before);
  let next = before;
  for (let row = 0; next < end; row++) if (numbers[row] === next) rows[next++ - before] = row;
  return rows;
}

function codesOf(part: Data, numbers: Uint32Array): Int32Array {
  const given = part.values as Int32Array | BigInt64Array;
  const codes = new (part.values.constructor as Int32ArrayConstructor)(part.length);
  const wide = (codes as Int32Array | BigInt64Array) instanceof BigInt64Array;
  for (let row = 0; row < part.length; row++) {
    if (part.nullCount > 0 && !part.getValid(row)) continue;
    const code = numbers[Number(given[row])];
    codes[row] = wide ? (BigInt(code) as never) : code;
  }
  return codes;
}

function requireRoom({ indices, dictionary }: Dictionary, values: number): void {
  const { bitWidth, isSigned } = indices;
  if (values <= 2 ** (isSigned ? bitWidth - 1 : bitWidth)) return;
  throw new CapacityError(
    `the dictionaries of a column have ${values} values together, too many for codes of ${bitWidth} bits`,
    { advice: `Cast the column to ${String(dictionary)}` },
  );
}
