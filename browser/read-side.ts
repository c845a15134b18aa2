import type { FileDigests } from '../connectors/model/decode-metadata.ts';
import { partName } from '../connectors/parquet/part-names.ts';
import { FactorFlowError } from '../engine/errors.ts';
import { type KeyColumn, type KeyType, keyCount, compareKeys } from '../engine/keys/key-column.ts';
import { sharedArray } from '../engine/partition.ts';
import type { ArrowValues } from './arrow/arrow-values.ts';
import { openArrowPart } from './arrow/read-arrow-part.ts';
import type { PartFile } from './feature-rows.ts';
import { openParquetPart } from './read-parquet-part.ts';
import { cancelledBy, problem, RemoteFile, type RemoteOptions } from './remote-file.ts';

/** A folder of a model, and what the metadata say of it. */
export interface SideShape {
  readonly folder: string;
  /** Of the folder in the model's folder. */
  readonly name: string;
  readonly rows: number;
  readonly width: number;
  readonly type: KeyType;
  readonly digests: FileDigests | undefined;
}

/** One side of a model, of which columns are read as they are needed. */
export interface RemoteSide {
  readonly shape: SideShape;
  readonly parts: readonly PartFile[];
}

const formats = ['parquet', 'arrow'] as const;
const openers = { parquet: openParquetPart, arrow: openArrowPart };

/**
 * Opens the part files of one side of a model until they have all rows: a web server does not list folders,
 * and the names of the files count from 0. Throws DataError for a missing or damaged file.
 */
export async function openSide(shape: SideShape, options: RemoteOptions): Promise<RemoteSide> {
  const { folder, name: side, rows, width, digests } = shape;
  const parts: PartFile[] = [];
  let [done, format]: [number, (typeof formats)[number]] = [0, 'parquet'];
  while (done < rows || parts.length === 0) {
    const name = `${side}/${partName(parts.length)}`;
    const url = `${folder}/${name}`;
    const found = await openPart(url, format, options);
    if ('missing' in found)
      throw problem(
        url,
        `the file is missing: the model has ${rows} rows, and ${done} were read; ${found.missing}`,
        'Copy all files of the model to the server',
      );
    ({ format } = found);
    const { file } = found;
    const part = await damageAt(file.url, () => openers[found.format](file, width, digests?.[name]));
    parts.push(part);
    done += part.rows;
  }
  if (done > rows)
    throw problem(
      `${folder}/${side}`,
      `the files have ${done} rows, and the metadata say ${rows}`,
      'Copy the model again',
    );
  return { shape, parts };
}

/**
 * The part file of this name, or else the Arrow file in its place; `first`: the format of the part before.
 */
async function openPart(url: string, first: (typeof formats)[number], options: RemoteOptions) {
  let missing = '';
  for (const format of first === 'arrow' ? formats.toReversed() : formats) {
    const file = await RemoteFile.open(url.replace(/parquet$/, format), options);
    if (!('missing' in file)) return { file, format };
    missing ||= file.missing;
  }
  return { missing };
}

/** The ids of all parts, which must ascend. */
export async function readIds({ shape, parts }: RemoteSide): Promise<KeyColumn> {
  const { rows, type } = shape;
  const ids = await Promise.all(parts.map((part) => damageAt(part.file.url, () => part.ids())));
  return keysOf(ids.flat(), type, rows, `${shape.folder}/${shape.name}`);
}

/** The numbers of all rows. */
export async function readAllRows({ shape, parts }: RemoteSide, signal: AbortSignal): Promise<Float32Array> {
  const values = sharedArray(Float32Array, shape.rows * shape.width);
  let done = 0;
  // One after the other: the bytes of a part take memory, too.
  for (const part of parts) {
    const own = values.subarray(done * shape.width, (done + part.rows) * shape.width);
    await damageAt(part.file.url, () => part.readAll(own, cancelledBy(part.file, signal)));
    done += part.rows;
  }
  return values;
}

/** Turns errors of the decoder, such as a wrong magic number, into an error that names the file. */
export async function damageAt<T>(url: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof FactorFlowError) throw error;
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
    if (compareKeys(keys, row - 1, keys, row) >= 0)
      throw problem(url, `the ids do not ascend in row ${row + 1}`);
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
