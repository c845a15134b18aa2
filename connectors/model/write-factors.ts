import { crc32 } from 'node:zlib';
import type { JsonObject } from '../../engine/json.ts';
import type { Partition } from '../../engine/partition.ts';
import { type RowPart, type RowParts, readRows } from '../../engine/row-parts.ts';
import type { TaskContracts } from '../../engine/run/step.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { sharedClock } from '../../engine/threads/shared-clock.ts';
import { fileSpan } from '../../engine/trace/trace.ts';
import { fileProblem } from '../files/file-problem.ts';
import { appendAll, createFile, syncHandle } from '../output/new-file.ts';
import { partName } from '../parquet/part-names.ts';
import { pageSum } from '../parquet/write/file-assembly.ts';
import {
  fieldsOf,
  encodeThrift,
  thrift,
  type ThriftStruct,
  type ThriftValue,
  encodeFooter,
  PARQUET_MAGIC,
} from '../parquet/write/thrift.ts';
import { BODY_SUM, hexOf } from './decode-metadata.ts';
import { type IdColumn, idCount, idData } from './id-column.ts';

/** One side of a model. Row r of the row-major matrix `factors` belongs to id r; ids ascend. */
export interface FactorTable {
  readonly ids: IdColumn;
  readonly factors: Float32Array;
}

/** A FactorTable whose factors may be in parts, for writing. */
export interface WrittenTable {
  readonly ids: IdColumn;
  readonly factors: RowParts;
}

/**
 * A part file has at least this number of floats. Parts are small, so that threads share the work evenly. A
 * larger model has WANTED_PARTS parts, until a part reaches the maximum size.
 */
const LEAST_PART_FLOATS = 1 << 22;
const MOST_PART_FLOATS = 1 << 25;
const WANTED_PARTS = 64;

/** Rows [from, to) of a side as one part file. */
export type FactorPart = { readonly file: string; readonly from: number; readonly to: number };

/** Parameters of the task: the part, and the side's RowParts without its arrays. */
export type WrittenPart = FactorPart & {
  readonly rows: number;
  readonly columns: number;
  readonly tail?: NonNullable<RowParts['tail']>;
  readonly scale?: NonNullable<RowParts['scale']>;
  readonly lead?: 0 | 1;
};

/**
 * The part files of a side. The cuts depend only on the number of rows and the rank, so the same model has
 * the same files.
 */
export function factorParts(
  rows: number,
  rank: number,
): { readonly name: string; readonly from: number; readonly to: number }[] {
  const floats = Math.min(
    MOST_PART_FLOATS,
    Math.max(LEAST_PART_FLOATS, Math.ceil((rows * rank) / WANTED_PARTS)),
  );
  const step = Math.max(1, Math.floor(floats / rank));
  return Array.from({ length: Math.max(1, Math.ceil(rows / step)) }, (_, part) => ({
    name: partName(part),
    from: part * step,
    to: Math.min(rows, (part + 1) * step),
  }));
}

/**
 * Writes id, features: list<float> of one part, and waits until it is on the disk. The same rows give the
 * same bytes. Returns the number of bytes.
 */
export async function writeFactorPart(
  { ids, factors }: WrittenTable,
  { file, from, to }: FactorPart,
  cancelled: () => boolean,
): Promise<number> {
  const handle = await createFile(file);
  let bytes = 0;
  try {
    for (const pieces of factorFile(ids, factors, from, to)) {
      if (cancelled()) return bytes;
      bytes += await appendAll(handle, pieces);
    }
    await syncHandle(handle);
    return bytes;
  } catch (error) {
    throw fileProblem(error, 'save', file);
  } finally {
    await handle.close();
  }
}

/**
 * The task write-factors: writes one part file, described by WrittenPart.
 *
 *     factors   layout factor-rows: `values.0`, `own.0`, `values.1`, ... Float32, and `order` (see RowParts)
 *     ids       layout ids: `values`, or `offsets` and `bytes` of text
 *
 * It returns the value `bytes`, the size of the file.
 */
export const writeFactorsContract: TaskContracts = { 'write-factors': { ids: 'read', factors: 'read' } };

/** A side as partitions in shared memory; arrays already there are not copied. */
export function sharedSide({ ids, factors }: WrittenTable): {
  readonly ids: Partition;
  readonly factors: Partition;
} {
  const rows = idCount(ids);
  const columns: Partition['columns'] =
    ids.type === 'utf8'
      ? { offsets: shared(ids.offsets), bytes: shared(ids.bytes) }
      : { values: shared(ids.values) };
  return {
    ids: { layout: 'ids', rows, columns },
    factors: {
      layout: 'factor-rows',
      rows,
      columns: {
        ...Object.fromEntries(
          factors.parts.flatMap(({ values, own }, part) => [
            [`values.${part}`, shared(values)],
            ...(own ? [[`own.${part}`, shared(own)]] : []),
          ]),
        ),
        ...(factors.order && { order: shared(factors.order) }),
      },
    },
  };
}

/** The values in shared memory; the same array if they are there already. */
export function shared<T extends Int32Array | Uint32Array | BigInt64Array | Float32Array | Uint8Array>(
  values: T,
): T {
  if (values.buffer instanceof SharedArrayBuffer) return values;
  const copy = new (values.constructor as new (buffer: SharedArrayBuffer) => T)(
    new SharedArrayBuffer(values.byteLength),
  );
  copy.set(values as never);
  return copy;
}

/** Handles the task in a worker thread. */
export async function writeFactorsTask({
  params,
  partition,
  cancelled,
}: {
  readonly params: JsonObject;
  partition(name: string): Partition;
  cancelled(): boolean;
}): Promise<TaskOutcome> {
  const { rows, columns, tail, scale, lead, ...part } = params as WrittenPart;
  const { order, ...held } = partition('factors').columns;
  const stored = held as Readonly<Record<string, Float32Array | undefined>>;
  const parts: RowPart[] = [];
  for (let values = stored['values.0']; values !== undefined; values = stored[`values.${parts.length}`])
    parts.push({ values, ...(stored[`own.${parts.length}`] && { own: stored[`own.${parts.length}`] }) });
  const start = sharedClock();
  const bytes = await writeFactorPart(
    {
      ids: idsOf(partition('ids').columns),
      factors: {
        rows,
        columns,
        parts,
        ...(tail && { tail }),
        ...(scale && { scale }),
        ...(lead !== undefined && { lead }),
        ...(order && { order: order as Uint32Array }),
      },
    },
    part,
    cancelled,
  );
  const count = part.to - part.from;
  return {
    rows: count,
    bytesDown: bytes,
    values: { bytes },
    spans: [fileSpan('writes', part.file, start, { rows: count, bytes })],
  };
}

function idsOf({ values, offsets, bytes }: Partition['columns']): IdColumn {
  if (values === undefined)
    return { type: 'utf8', offsets: offsets as Int32Array, bytes: bytes as Uint8Array };
  return values instanceof BigInt64Array
    ? { type: 'int64', values }
    : { type: 'int32', values: values as Int32Array };
}

/**
 * Writes a part file of factors as Parquet. It is not compressed, since compression saves only 1 % of
 * factors. The values are views of the factors' own memory, so writing costs only the system's copy. Format:
 * parquet.thrift and Encodings.md of apache/parquet-format. Columns are id and features, a list of floats:
 *
 *     "PAR1",   for each row group: pages of id, pages of features
 *     for each row group: places of the pages of features (offset index),   footer, its length, "PAR1"
 *     page:     header with a checksum, [bytes of repetition levels, the levels, bytes of definition levels, the
 *               levels,] values
 *
 * Pages (browser/) read single rows: a row's numbers are at a fixed distance from the end of its page. Features
 * of a row have the repetition levels 0 1 1 … 1 and the definition level 1: runs of the RLE
 * encoding.
 */

const { i16, i32, i64, binary, struct, list } = thrift;

/** Floats in a row group, and in a page. */
const ROW_GROUP_FLOATS = 1 << 22;
const PAGE_FLOATS = 1 << 18;

/** Longest text id, in bytes, that is stored as a minimum or maximum. */
const LONGEST_BOUND = 64;

const [INT32, INT64, FLOAT, BYTE_ARRAY] = [1, 2, 4, 6];
const [REQUIRED, REPEATED] = [0, 2];
const [UTF8, LIST] = [0, 3];
const [PLAIN, RLE] = [0, 3];
const DATA_PAGE = 0;
const UNCOMPRESSED = 0;

interface Chunk {
  readonly pieces: readonly Uint8Array[];
  /** Rows and bytes of each page. */
  readonly pages: readonly { readonly rows: number; readonly bytes: number }[];
  readonly metadata: (start: number) => ThriftValue;
  readonly bytes: number;
}

/** The pieces of the file for rows [from, to), in order. */
export function* factorFile(
  ids: IdColumn,
  factors: RowParts,
  from: number,
  to: number,
): Generator<Uint8Array[]> {
  const { columns: rank } = factors;
  let sum = 0;
  const summed = (pieces: Uint8Array[]) => {
    for (const piece of pieces) sum = crc32(piece, sum);
    return pieces;
  };
  yield summed([PARQUET_MAGIC]);
  let position = PARQUET_MAGIC.length;
  const groups: ThriftStruct[] = [];
  const indexes: { readonly chunk: ThriftStruct; readonly index: Uint8Array }[] = [];
  const step = Math.max(1, Math.floor(ROW_GROUP_FLOATS / rank));
  for (let start = from; start < to; start += step) {
    const end = Math.min(to, start + step);
    const columns: ThriftStruct[] = [];
    const begins = position;
    const features = featureChunk(factors, start, end);
    for (const chunk of [idChunk(ids, start, end), features]) {
      columns.push(fieldsOf({ 2: i64(0), 3: chunk.metadata(position) }));
      if (chunk === features) indexes.push({ chunk: columns[1], index: offsetIndex(chunk, position) });
      position += chunk.bytes;
      yield summed([...chunk.pieces]);
    }
    const bytes = i64(position - begins);
    groups.push(
      fieldsOf({
        1: thrift.structs(columns),
        2: bytes,
        3: i64(end - start),
        5: i64(begins),
        6: bytes,
        7: i16(groups.length),
      }),
    );
  }
  for (const { chunk, index } of indexes) {
    chunk.set(4, i64(position)).set(5, i32(index.length));
    position += index.length;
    yield summed([index]);
  }
  const end = encodeFooter(
    fieldsOf({
      1: i32(1),
      2: list(schemaOf(ids.type)),
      3: i64(to - from),
      4: thrift.structs(groups),
      5: list([struct({ 1: binary(BODY_SUM), 2: binary(hexOf(sum)) })]),
      6: binary('factorflow version 1'),
      7: list([0, 1].map(() => struct({ 1: struct({}) }))),
    }),
  );
  yield [end];
}

/** The place, bytes and first row of each page of a chunk that begins at a place of the file. */
function offsetIndex({ pages }: Chunk, start: number): Uint8Array {
  let [at, row] = [start, 0];
  const places = pages.map(({ rows, bytes }) => {
    const place = fieldsOf({ 1: i64(at), 2: i32(bytes), 3: i64(row) });
    [at, row] = [at + bytes, row + rows];
    return place;
  });
  return encodeThrift(fieldsOf({ 1: thrift.structs(places) }));
}

function schemaOf(type: IdColumn['type']): ThriftValue[] {
  const id = {
    int32: { 1: i32(INT32) },
    int64: { 1: i32(INT64) },
    utf8: { 1: i32(BYTE_ARRAY), 6: i32(UTF8), 10: struct({ 1: struct({}) }) },
  }[type];
  return [
    struct({ 4: binary('arrow_schema'), 5: i32(2) }),
    struct({ ...id, 3: i32(REQUIRED), 4: binary('id') }),
    struct({
      3: i32(REQUIRED),
      4: binary('features'),
      5: i32(1),
      6: i32(LIST),
      10: struct({ 3: struct({}) }),
    }),
    struct({ 3: i32(REPEATED), 4: binary('list'), 5: i32(1) }),
    struct({ 1: i32(FLOAT), 3: i32(REQUIRED), 4: binary('element') }),
  ];
}

function idChunk(ids: IdColumn, from: number, to: number): Chunk {
  const values =
    ids.type === 'utf8' ? lengthsAndTexts(ids, from, to) : bytesOf(ids.values.subarray(from, to));
  const type = { int32: INT32, int64: INT64, utf8: BYTE_ARRAY }[ids.type];
  const page = { values, count: to - from, rows: to - from };
  return chunkOf(type, ['id'], to - from, [page], boundsOf(ids, from, to));
}

/** Ids ascend, so the first and the last are the minimum and maximum. */
function boundsOf(ids: IdColumn, from: number, to: number): ThriftValue | undefined {
  const [smallest, largest] = [from, to - 1].map((row) =>
    bytesOf(idData(ids, row, row + 1).values as Uint8Array),
  );
  if (Math.max(smallest.length, largest.length) > LONGEST_BOUND) return undefined;
  return struct({ 3: i64(0), 5: binary(largest), 6: binary(smallest) });
}

function lengthsAndTexts(
  { offsets, bytes }: IdColumn & { readonly type: 'utf8' },
  from: number,
  to: number,
): Uint8Array {
  const values = Buffer.allocUnsafe(offsets[to] - offsets[from] + 4 * (to - from));
  let at = 0;
  for (let row = from; row < to; row++) {
    at = values.writeUInt32LE(offsets[row + 1] - offsets[row], at);
    values.set(bytes.subarray(offsets[row], offsets[row + 1]), at);
    at += offsets[row + 1] - offsets[row];
  }
  return values;
}

function featureChunk(factors: RowParts, from: number, to: number): Chunk {
  const { columns: rank } = factors;
  const step = Math.max(1, Math.floor(PAGE_FLOATS / rank));
  const whole = levelsOf(rank, Math.min(step, to - from));
  const pages: Page[] = [];
  for (let start = from; start < to; start += step) {
    const end = Math.min(to, start + step);
    const levels = end - start === step ? whole : levelsOf(rank, end - start);
    const rows = end - start;
    pages.push({ values: bytesOf(readRows(factors, start, end)), count: rows * rank, rows, levels });
  }
  return chunkOf(FLOAT, ['features', 'list', 'element'], (to - from) * rank, pages);
}

/**
 * Repetition levels, then definition levels, of `rows` rows with `rank` features, each preceded by its length
 * in bytes.
 */
function levelsOf(rank: number, rows: number): Uint8Array {
  const row = [...varint(1 << 1), 0, ...(rank > 1 ? [...varint((rank - 1) << 1), 1] : [])];
  const definitions = [...varint(2 * rank * rows), 1];
  const levels = Buffer.alloc(8 + row.length * rows + definitions.length);
  levels.writeUInt32LE(row.length * rows, 0);
  levels.fill(Uint8Array.from(row), 4, 4 + row.length * rows);
  levels.writeUInt32LE(definitions.length, 4 + row.length * rows);
  levels.set(definitions, 8 + row.length * rows);
  return levels;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}

/** Values of a page, their number, the number of rows, and the levels before the values. */
interface Page {
  readonly values: Uint8Array;
  readonly count: number;
  readonly rows: number;
  readonly levels?: Uint8Array;
}

function chunkOf(
  type: number,
  path: readonly string[],
  count: number,
  pages: readonly Page[],
  statistics?: ThriftValue,
): Chunk {
  const written = pages.map(({ values, count: valueCount, rows, levels = new Uint8Array(0) }) => {
    const size = i32(levels.length + values.length);
    const header = encodeThrift(
      fieldsOf({
        1: i32(DATA_PAGE),
        2: size,
        3: size,
        4: pageSum(levels, values),
        5: struct({ 1: i32(valueCount), 2: i32(PLAIN), 3: i32(RLE), 4: i32(RLE) }),
      }),
    );
    const pieces = [header, levels, values];
    return { pieces, rows, bytes: pieces.reduce((sum, { length }) => sum + length, 0) };
  });
  const bytes = written.reduce((sum, page) => sum + page.bytes, 0);
  const metadata = (start: number) =>
    struct({
      1: i32(type),
      2: list([i32(PLAIN), i32(RLE)]),
      3: list(path.map(binary)),
      4: i32(UNCOMPRESSED),
      5: i64(count),
      6: i64(bytes),
      7: i64(bytes),
      9: i64(start),
      12: statistics,
    });
  return { pieces: written.flatMap(({ pieces }) => pieces), pages: written, metadata, bytes };
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Approximate bytes of a stored side. */
export function storedBytes(ids: IdColumn, { rows, columns }: RowParts): number {
  return (
    4 * rows * columns + (ids.type === 'utf8' ? ids.bytes.length + 4 * idCount(ids) : ids.values.byteLength)
  );
}
