import { fromHalf } from '../../engine/numbers/half.ts';
import { problem } from '../remote-file.ts';
import { type ArrowField, arrowTypes } from './arrow-fields.ts';
import type { ArrowBatch, ArrowFile, ArrowPiece } from './arrow-file.ts';

const { int, float, binary, utf8, list, fixedList, largeBinary, largeUtf8, largeList } = arrowTypes;

/** Numbers, or the bytes of texts. */
export type ArrowValues = Numbers | readonly Uint8Array[];

type Numbers = ArrayLike<number | bigint> & Iterable<number | bigint>;

/** Offsets of rows in the values of a list, or in the bytes of texts: one more than rows. */
async function offsetsOf(
  file: ArrowFile,
  { batch, from, to }: Pick<ArrowPiece, 'batch' | 'from' | 'to'>,
  { buffer, type }: ArrowField,
): Promise<readonly number[]> {
  const wide = type === largeBinary || type === largeUtf8 || type === largeList;
  const bytes = wide ? 8 : 4;
  const read = await file.bytes(batch, buffer + 1, bytes * from, bytes * (to + 1));
  return wide ? Array.from(new BigInt64Array(read), Number) : Array.from(new Int32Array(read));
}

/**
 * The values of a column in rows of one batch, without the rows that are null: see `validRows`. Throws
 * DataError for a column of another type than whole numbers, floats, texts and bytes.
 */
export async function readValues(
  file: ArrowFile,
  piece: ArrowPiece,
  field: ArrowField,
): Promise<ArrowValues> {
  const { type, size } = field;
  if ([binary, utf8, largeBinary, largeUtf8].some((one) => one === type)) {
    const offsets = await offsetsOf(file, piece, field);
    const [first, last] = [offsets[0], offsets.at(-1) as number];
    const bytes = new Uint8Array(await file.bytes(piece.batch, field.buffer + 2, first, last));
    return offsets.slice(1).map((end, row) => bytes.subarray(offsets[row] - first, end - first));
  }
  const width = type === int ? size / 8 : type === float ? 2 << size : 0;
  if (width === 0) throw problem(file.file.url, `the column ${field.name} has no numbers, texts or bytes`);
  const bytes = await file.bytes(piece.batch, field.buffer + 1, width * piece.from, width * piece.to);
  return type === float ? floats(bytes, size) : integers(bytes, size, field.signed);
}

function floats(bytes: ArrayBuffer, precision: number): Float32Array | Float64Array {
  if (precision === 0) return Float32Array.from(new Uint16Array(bytes), fromHalf);
  return precision === 1 ? new Float32Array(bytes) : new Float64Array(bytes);
}

function integers(bytes: ArrayBuffer, bits: number, signed: boolean): Numbers {
  if (bits === 64) return signed ? new BigInt64Array(bytes) : new BigUint64Array(bytes);
  if (bits === 32) return signed ? new Int32Array(bytes) : new Uint32Array(bytes);
  if (bits === 16) return signed ? new Int16Array(bytes) : new Uint16Array(bytes);
  return signed ? new Int8Array(bytes) : new Uint8Array(bytes);
}

/** For each row, true unless its value is null. */
export async function validRows(
  file: ArrowFile,
  { batch, from, to }: ArrowPiece,
  { entry, buffer }: ArrowField,
): Promise<readonly boolean[]> {
  const rows = Array.from({ length: to - from }, () => true);
  if ((batch.nulls[entry] ?? 0) === 0) return rows;
  const start = from >> 3;
  const bits = new Uint8Array(await file.bytes(batch, buffer, start, (to + 7) >> 3));
  return rows.map((_, i) => ((bits[((from + i) >> 3) - start] >> ((from + i) & 7)) & 1) === 1);
}

/** Throws DataError if a value of the column is null. */
export function requireValues(
  file: ArrowFile,
  batch: ArrowBatch,
  { name, entry, children }: ArrowField,
): void {
  if ([entry, ...children.map((child) => child.entry)].some((one) => (batch.nulls[one] ?? 0) > 0))
    throw problem(file.file.url, `the column ${name} has nulls`);
}

/**
 * The first value of a list column in rows of one batch, of which each has `width` floats. Throws DataError
 * for a row of another length.
 */
export async function firstValue(
  file: ArrowFile,
  piece: ArrowPiece,
  field: ArrowField,
  width: number,
): Promise<number> {
  const { url } = file.file;
  const wrong = (length: number) =>
    problem(url, `a feature vector has ${length} values, and the model's rank is ${width}`);
  if (field.children[0]?.type !== float)
    throw problem(url, `the column ${field.name} has no lists of floats`);
  if (field.type === fixedList) {
    if (field.size !== width) throw wrong(field.size);
    return piece.from * width;
  }
  const offsets = await offsetsOf(file, piece, field);
  const other = offsets.findIndex((start, row) => row > 0 && start - offsets[row - 1] !== width);
  if (other > 0) throw wrong(offsets[other] - offsets[other - 1]);
  return offsets[0];
}

/** Rows of `width` floats of a list column, one row after the other: see firstValue. */
export async function readLists(
  file: ArrowFile,
  piece: ArrowPiece,
  field: ArrowField,
  width: number,
): Promise<ArrayLike<number>> {
  const from = await firstValue(file, piece, field, width);
  const to = from + (piece.to - piece.from) * width;
  const values = await readValues(file, { ...piece, from, to }, field.children[0]);
  return values as ArrayLike<number>;
}

export function isList({ type }: ArrowField): boolean {
  return type === list || type === largeList || type === fixedList;
}
