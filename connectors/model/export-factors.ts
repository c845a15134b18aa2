import { Field, FixedSizeList, Float16, Float32, makeData, Schema } from 'apache-arrow';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import { toHalf } from '../../engine/numbers/half.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';
import { fileProblem } from '../files/file-problem.ts';
import { atomicOutput } from '../output/atomic-output.ts';
import { parquetBackend } from '../parquet/backends.ts';
import { type IdColumn, idCount, idData } from './id-column.ts';

export const exportFormats = ['npy', 'parquet', 'safetensors'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export interface ExportOptions {
  /**
   * NumPy arrays (user_ids.npy, user_factors.npy, item_ids.npy, item_factors.npy), Parquet (users.parquet,
   * items.parquet: id, features), or safetensors (factors.safetensors: tensors of the arrays' names; text ids
   * as user_id_bytes, UTF-8, and user_id_offsets, n + 1 of them).
   */
  readonly format: ExportFormat;
  readonly precision: 'float32' | 'float16';
  readonly overwrite?: boolean;
  readonly signal?: AbortSignal;
}

const names = [
  'user_ids.npy',
  'user_factors.npy',
  'item_ids.npy',
  'item_factors.npy',
  'users.parquet',
  'items.parquet',
  'factors.safetensors',
];

/** Writes a folder with the factors of both sides. It appears completely or not at all. */
export async function exportFactors(
  directory: string,
  sides: ExportedSides,
  rank: number,
  { format = 'npy', precision = 'float32', ...options }: Partial<ExportOptions>,
): Promise<void> {
  if (!exportFormats.includes(format))
    throw new UsageError(`format must be npy, parquet or safetensors, got ${String(format)}`);
  if (precision !== 'float32' && precision !== 'float16')
    throw new UsageError(`precision must be float32 or float16, got ${String(precision)}`);
  throwIfAborted(options.signal, 'export');
  const bytes = Object.values(sides).reduce((sum, { factors }) => sum + factors.byteLength, 0);
  const output = await atomicOutput(directory, {
    kind: 'folder',
    overwrite: options.overwrite,
    recognizes: (path) => names.includes(path),
    durable: true,
  });
  try {
    const write = { npy: writeArrays, parquet: writeTables, safetensors: writeTensors }[format];
    await write(output.temporary, sides, { rank, precision, signal: options.signal });
    await output.commit();
  } catch (error) {
    throw await output.fail(
      fileProblem(error, 'export', directory),
      precision === 'float16' ? bytes / 2 : bytes,
    );
  }
}

/** Writes user_ids.npy, user_factors.npy, item_ids.npy and item_factors.npy. */
async function writeArrays(folder: string, sides: ExportedSides, form: ExportForm): Promise<void> {
  for (const [side, { ids, factors }] of Object.entries(sides)) {
    const array = ids.type === 'utf8' ? { texts: textsOf(ids) } : { values: ids.values };
    await writePieces(join(folder, `${side}_ids.npy`), npyBytes({ shape: [idCount(ids)], ...array }));
    const shape = [idCount(ids), form.rank];
    const numbers = form.precision === 'float16' ? { half: toHalf(factors) } : { values: factors };
    await writePieces(join(folder, `${side}_factors.npy`), npyBytes({ shape, ...numbers }));
    throwIfAborted(form.signal, 'export');
  }
}

function textsOf({ offsets, bytes }: { readonly offsets: Int32Array; readonly bytes: Uint8Array }): string[] {
  return Array.from({ length: offsets.length - 1 }, (_, i) =>
    Buffer.from(bytes.subarray(offsets[i], offsets[i + 1])).toString('utf8'),
  );
}

/**
 * A .npy file, version 1.0 of NumPy's format: a header with type and shape, padded to 64 bytes, then the
 * numbers in C order.
 *
 *     \x93NUMPY 1 0   length of the header, uint16   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 8), }\n   ...
 */
type NpyArray = { readonly shape: readonly number[] } & (
  | { readonly values: Float32Array | Int32Array | BigInt64Array }
  /** Bits of float16 numbers. */
  | { readonly half: Uint16Array }
  /** Texts of Unicode code points, padded to the longest. */
  | { readonly texts: readonly string[] }
);

/** The file's bytes in pieces: the header, then the array, as a view of its own memory if its type allows. */
export function npyBytes(array: NpyArray): Uint8Array[] {
  const { type, bytes } = contentOf(array);
  const shape = array.shape.length === 1 ? `(${array.shape[0]},)` : `(${array.shape.join(', ')})`;
  const text = `{'descr': '${type}', 'fortran_order': False, 'shape': ${shape}, }`;
  const length = 64 * Math.ceil((10 + text.length + 1) / 64) - 10;
  const header = new Uint8Array(10 + length).fill(0x20);
  header.set([0x93, ...new TextEncoder().encode('NUMPY'), 1, 0, length & 255, length >> 8]);
  header.set(new TextEncoder().encode(text), 10);
  header[header.length - 1] = 0x0a;
  return [header, bytes];
}

function contentOf(array: NpyArray): { readonly type: string; readonly bytes: Uint8Array } {
  if ('half' in array) return { type: '<f2', bytes: bytesOf(array.half) };
  if ('values' in array)
    return {
      type: array.values instanceof Float32Array ? '<f4' : array.values instanceof Int32Array ? '<i4' : '<i8',
      bytes: bytesOf(array.values),
    };
  const points = array.texts.map((text) => Array.from(text, (character) => character.codePointAt(0) ?? 0));
  const width = points.reduce((most, own) => Math.max(most, own.length), 1);
  const codes = new Uint32Array(width * points.length);
  points.forEach((own, row) => codes.set(own, row * width));
  return { type: `<U${width}`, bytes: bytesOf(codes) };
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Writes factors.safetensors: ids and factors of both sides, in the order of their ids. */
async function writeTensors(folder: string, sides: ExportedSides, form: ExportForm): Promise<void> {
  const tensors = Object.entries(sides).flatMap(([side, { ids, factors }]): Tensor[] => [
    {
      name: `${side}_factors`,
      type: form.precision === 'float16' ? 'F16' : 'F32',
      shape: [idCount(ids), form.rank],
      data: form.precision === 'float16' ? toHalf(factors) : factors,
    },
    ...idTensors(side, ids),
  ]);
  const metadata = { format: 'factorflow', rank: String(form.rank) };
  await writePieces(join(folder, 'factors.safetensors'), safetensorsBytes(tensors, metadata));
}

/** The format has no texts: UTF-8 bytes of all ids, and where each id begins and the last one ends. */
function idTensors(side: string, ids: IdColumn): Tensor[] {
  const shape = [idCount(ids)];
  if (ids.type === 'int32') return [{ name: `${side}_ids`, type: 'I32', shape, data: ids.values }];
  if (ids.type === 'int64') return [{ name: `${side}_ids`, type: 'I64', shape, data: ids.values }];
  const bytes = ids.bytes.subarray(0, ids.offsets[ids.offsets.length - 1]);
  return [
    { name: `${side}_id_bytes`, type: 'U8', shape: [bytes.length], data: bytes },
    { name: `${side}_id_offsets`, type: 'I32', shape: [ids.offsets.length], data: ids.offsets },
  ];
}

/**
 * A file of the safetensors format: the length of the header, a header of JSON padded to 8 bytes, then the
 * tensors in C order. The tensors are written by size of their numbers, so that each one is aligned.
 *
 *     length, uint64   {"user_factors": {"dtype": "F32", "shape": [3, 8], "data_offsets": [0, 96]}, ...}   ...
 */
interface Tensor {
  readonly name: string;
  readonly type: 'F32' | 'F16' | 'I32' | 'I64' | 'U8';
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
}

/** The file's bytes in pieces: length and header, then the tensors as views of their own memory. */
function safetensorsBytes(
  tensors: readonly Tensor[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array[] {
  const sorted = tensors.toSorted((left, right) => numberBytes[right.type] - numberBytes[left.type]);
  let end = 0;
  const entries = sorted.map(({ name, type: dtype, shape, data }) => {
    const start = end;
    end += data.byteLength;
    return [name, { dtype, shape, data_offsets: [start, end] }] as const;
  });
  const json = JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) });
  const text = new TextEncoder().encode(json);
  const header = new Uint8Array(8 + 8 * Math.ceil(text.length / 8)).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(header.length - 8), true);
  header.set(text, 8);
  const bytes = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
    new Uint8Array(buffer, byteOffset, byteLength);
  return [header, ...sorted.map(({ data }) => bytes(data))];
}

const numberBytes: Readonly<Record<Tensor['type'], number>> = { I64: 8, F32: 4, I32: 4, F16: 2, U8: 1 };

const BATCH_FLOATS = 1 << 20;

/** Writes users.parquet and items.parquet: id, features. */
async function writeTables(folder: string, sides: ExportedSides, form: ExportForm): Promise<void> {
  for (const [side, { ids, factors }] of Object.entries(sides)) {
    await writeParquet(join(folder, `${side}s.parquet`), ids, factors, form.rank, form.precision);
    throwIfAborted(form.signal, 'export');
  }
}

async function writeParquet(
  path: string,
  ids: IdColumn,
  factors: Float32Array,
  rank: number,
  precision: ExportForm['precision'],
): Promise<void> {
  const float = precision === 'float16' ? new Float16() : new Float32();
  const type = new FixedSizeList(rank, new Field('element', float, false));
  const schema = new Schema([
    new Field('id', idData(ids, 0, 0).type, false),
    new Field('features', type, false),
  ]);
  const rows = idCount(ids);
  const step = Math.max(1, Math.floor(BATCH_FLOATS / rank));
  const writer = await (
    await parquetBackend()
  ).create(path, schema, { codec: 'zstd', rowGroupSize: 8 * step, dictionary: false });
  try {
    for (let from = 0; from < rows || from === 0; from += step) {
      const to = Math.min(rows, from + step);
      const values = factors.subarray(from * rank, to * rank);
      const child = makeData({
        type: float as Float32,
        length: values.length,
        nullCount: 0,
        data: (precision === 'float16' ? toHalf(values) : values) as Float32Array,
      });
      const features = makeData({
        type: type as FixedSizeList<Float32>,
        length: to - from,
        nullCount: 0,
        child,
      });
      await writer.write(batchOf(schema, to - from, [idData(ids, from, to), features]));
    }
    await writer.close();
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

/** The ids of one side, and `rank` numbers for each. */
export interface ExportedSide {
  readonly ids: IdColumn;
  readonly factors: Float32Array;
}

interface ExportedSides {
  readonly user: ExportedSide;
  readonly item: ExportedSide;
}

/** Of the numbers, and a signal that cancels between files. */
interface ExportForm {
  readonly rank: number;
  readonly precision: 'float32' | 'float16';
  readonly signal: AbortSignal | undefined;
}

async function writePieces(path: string, pieces: readonly Uint8Array[]): Promise<void> {
  const file = await open(path, 'wx');
  try {
    for (const piece of pieces) await file.writeFile(piece);
  } finally {
    await file.close();
  }
}
