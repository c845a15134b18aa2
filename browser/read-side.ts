import { partName } from '../connectors/parquet/part-names.ts';
import type { DataError } from '../engine/errors.ts';
import { type KeyColumn, type KeyType, keyCount } from '../engine/keys/key-column.ts';
import { sharedArray } from '../engine/partition.ts';
import { readArrowPart } from './arrow/read-arrow-part.ts';
import type { ArrowValues } from './arrow/arrow-values.ts';
import { readParquetPart } from './read-parquet-part.ts';
import { problem, RemoteFile, type RemoteOptions } from './remote-file.ts';

/** Ids and their numbers, `width` of each. */
export interface RemoteSide {
  readonly ids: KeyColumn;
  readonly values: Float32Array;
}

/** A folder of a model: its address, and the shape that the metadata give. */
export interface SideShape {
  readonly url: string;
  readonly rows: number;
  readonly width: number;
  readonly type: KeyType;
}

const formats = ['parquet', 'arrow'] as const;
const readers = { parquet: readParquetPart, arrow: readArrowPart };

/**
 * Reads the part files of one side of a model until it has all rows: a web server does not list folders, and
 * the names of the files count from 0. Throws DataError for a missing or damaged file.
 */
export async function readSide(shape: SideShape, options: RemoteOptions): Promise<RemoteSide> {
  const { url, rows, width, type } = shape;
  const values = sharedArray(Float32Array, rows * width);
  const ids: ArrowValues[] = [];
  let done = 0;
  for (let part = 0; done < rows || part === 0; part++) {
    const found = await openPart(`${url}/${partName(part)}`, options);
    if (found === undefined)
      throw problem(
        `${url}/${partName(part)}`,
        `the file is missing: the model has ${rows} rows, and ${done} were read`,
        'Copy all files of the model to the server',
      );
    const { file, read: reader } = found;
    const read = await damageAt(file.url, () => reader(file, width, values.subarray(done * width)));
    done += read.rows;
    ids.push(...read.ids);
  }
  if (done > rows)
    throw problem(url, `the files have ${done} rows, and the metadata say ${rows}`, 'Copy the model again');
  const keys = keysOf(ids, type, rows, url);
  return { ids: keys, values };
}

/** The part file of this name, or else the Arrow file in its place. Undefined if the server has neither. */
export async function openPart(url: string, options: RemoteOptions) {
  for (const format of formats) {
    const address = url.replace(/parquet$/, format);
    const file = await RemoteFile.open(address, options);
    if (file !== undefined) return { file, format, read: readers[format] };
  }
  return undefined;
}

/** Turns errors of the decoder, such as a wrong magic number, into an error that names the file. */
async function damageAt<T>(url: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Error && 'details' in error) throw error as DataError;
    if (error instanceof DOMException) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw problem(url, `the file is damaged: ${reason}`, 'Copy the model again', error);
  }
}

/** The ids of all parts as keys, which must ascend. */
function keysOf(parts: readonly ArrowValues[], type: KeyType, rows: number, url: string): KeyColumn {
  const keys = joined(parts, type, rows);
  if (keys === undefined) throw problem(url, `the ids are not ${type}, as the metadata say`);
  for (let row = 1; row < keyCount(keys); row++)
    if (!ascends(keys, row)) throw problem(url, `the ids do not ascend in row ${row + 1}`);
  return keys;
}

/** Undefined if the ids are not all of the type. */
function joined(parts: readonly ArrowValues[], type: KeyType, rows: number): KeyColumn | undefined {
  if (type === 'int32') {
    const values = sharedArray(Int32Array, rows);
    let at = 0;
    for (const part of parts)
      for (const id of part) {
        const value = typeof id === 'object' ? NaN : Number(id);
        if (value !== (value | 0)) return undefined;
        values[at++] = value;
      }
    return { type, values };
  }
  if (type === 'int64') {
    const halves = sharedArray(Int32Array, 2 * rows);
    let at = 0;
    for (const part of parts)
      for (const id of part) {
        if (typeof id !== 'bigint' && !Number.isInteger(id)) return undefined;
        const value = BigInt(id as number | bigint);
        if (BigInt.asIntN(64, value) !== value) return undefined;
        halves[at++] = Number(BigInt.asIntN(32, value));
        halves[at++] = Number(BigInt.asIntN(32, value >> 32n));
      }
    return { type, halves };
  }
  const texts = parts.flatMap((part) => Array.from(part as ArrayLike<unknown>));
  if (!texts.every((text) => text instanceof Uint8Array)) return undefined;
  const offsets = sharedArray(Int32Array, rows + 1);
  texts.forEach((text, row) => (offsets[row + 1] = offsets[row] + text.length));
  const bytes = sharedArray(Uint8Array, offsets[rows]);
  texts.forEach((text, row) => bytes.set(text, offsets[row]));
  return { type, offsets, bytes };
}

function ascends(keys: KeyColumn, row: number): boolean {
  if (keys.type === 'int32') return keys.values[row - 1] < keys.values[row];
  if (keys.type === 'int64') {
    const { halves } = keys;
    const [before, own] = [halves[2 * row - 1], halves[2 * row + 1]];
    return before < own || (before === own && halves[2 * row - 2] >>> 0 < halves[2 * row] >>> 0);
  }
  const { offsets, bytes } = keys;
  const [from, middle, to] = [offsets[row - 1], offsets[row], offsets[row + 1]];
  for (let i = 0; i < Math.min(middle - from, to - middle); i++) {
    const difference = bytes[from + i] - bytes[middle + i];
    if (difference !== 0) return difference < 0;
  }
  return middle - from < to - middle;
}
