import { CapacityError, DataError } from '../errors.ts';
import { formatBytes } from '../format.ts';
import type { JsonObject } from '../json.ts';
import {
  type ColumnKind,
  columnTypes,
  type Partition,
  type SharedColumn,
  type SpilledPartition,
} from '../partition.ts';

/** A file that has been written. */
export type WrittenFile = JsonObject & {
  readonly bytes: number;
  readonly directory: readonly SpilledPartition[];
};

/** CRC-32 of bytes, continuing the checksum of earlier bytes: zlib's, which the engine cannot import. */
export type Checksum = (bytes: Uint8Array, before: number) => number;

/** Bytes per read, few enough that they are still in the cache for the checksum. */
const READ_BYTES = 1 << 20;

/**
 * A generator that yields the reads that it needs. The caller reads from position `at` of the file into
 * `bytes`, and passes the number of bytes read to `next`.
 */
type Reads<Result> = Generator<{ readonly bytes: Uint8Array; readonly at: number }, Result, number>;

/**
 * Reads a partition back. `memory` returns a buffer of at least the given size. Throws DataError if the file
 * has changed since it was written.
 */
export function* readPartition(
  spilled: SpilledPartition,
  memory: (bytes: number) => ArrayBufferLike,
  checksum: Checksum,
): Reads<Partition> {
  const { layout, rows, pieces } = spilled;
  const placed = Object.entries(spilled.columns);
  const buffer = memory(placed.reduce((sum, [, { kind, length }]) => sum + paddedBytes(kind, length), 0));
  const columns: Record<string, SharedColumn> = {};
  let [start, found] = [0, 0];
  for (const [name, { kind, at, length }] of placed) {
    const column = new columnTypes[kind](buffer, start, length);
    found = yield* readInto(new Uint8Array(buffer, start, column.byteLength), at, found, spilled, checksum);
    columns[name] = column;
    start += paddedBytes(kind, length);
  }
  if (found !== spilled.checksum) throw fileChanged(spilled, 'has another checksum');
  return { layout, rows, columns, ...(pieces && { ends: pieces.ends }) };
}

/**
 * Reads back one piece of a partition's only column; a column without pieces is one piece. Throws the errors
 * of readPartition.
 */
export function* readPiece(
  spilled: SpilledPartition,
  piece: number,
  checksum: Checksum,
): Reads<SharedColumn> {
  const [{ kind, at, length }] = Object.values(spilled.columns);
  const { ends, checksums } = spilled.pieces ?? { ends: [length], checksums: [spilled.checksum] };
  const [start, before] = piece === 0 ? [0, 0] : [ends[piece - 1], checksums[piece - 1]];
  const size = columnTypes[kind].BYTES_PER_ELEMENT;
  const buffer = new ArrayBuffer((ends[piece] - start) * size);
  const found = yield* readInto(new Uint8Array(buffer), at + start * size, before, spilled, checksum);
  if (found !== checksums[piece]) throw fileChanged(spilled, 'has another checksum');
  return new columnTypes[kind](buffer);
}

/** Fills memory from a position of the file; returns the checksum, which continues `found`. */
function* readInto(
  all: Uint8Array,
  at: number,
  found: number,
  spilled: SpilledPartition,
  checksum: Checksum,
): Reads<number> {
  for (let done = 0; done < all.length;) {
    const bytes = all.subarray(done, Math.min(all.length, done + READ_BYTES));
    const read = yield { bytes, at: at + done };
    if (read === 0) throw fileChanged(spilled, 'is cut off');
    found = checksum(bytes.subarray(0, read), found);
    done += read;
  }
  return found;
}

/** The library's error for a file that cannot be opened or read. */
export function readProblem(error: unknown, spilled: SpilledPartition): unknown {
  const code = systemCode(error);
  if (code === 'ENOENT') return fileChanged(spilled, 'is gone');
  return code === undefined ? error : refused('read', code, spilled.file, error);
}

/**
 * The library's error for a file that cannot be written. If the disk is full, it names the number of bytes.
 */
export function writeProblem(error: unknown, file: string, bytes: number): unknown {
  const code = systemCode(error);
  if (code === undefined) return error;
  if (!['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code)) return refused('written', code, file, error);
  return new CapacityError(`the disk is full: ${formatBytes(bytes)} (${bytes} bytes) more did not fit`, {
    phase: 'spill',
    file,
    advice: 'Free some space, choose another spillDir, or raise memoryBudget',
    cause: error,
  });
}

/** The system's name of an error, such as "EIO". */
function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'syscall' in error && 'code' in error ? String(error.code) : undefined;
}

function refused(done: 'read' | 'written', code: string, file: string, cause: unknown): DataError {
  return new DataError(`a spill file cannot be ${done} (${code})`, {
    phase: 'spill',
    file,
    advice: 'Check the disk, or choose another spillDir',
    cause,
  });
}

/** Bytes of the columns of partitions in files. */
export function spilledSize(partitions: readonly Partition[]): number {
  return partitions
    .flatMap(({ spilled }) => Object.values(spilled?.columns ?? {}))
    .reduce((sum, { kind, length }) => sum + length * columnTypes[kind].BYTES_PER_ELEMENT, 0);
}

function fileChanged({ file, number, layout }: SpilledPartition, found: string): DataError {
  return new DataError(
    `a spill file was changed by another program: its partition ${number} (${layout}) ${found}`,
    { phase: 'spill', file, advice: 'Do not change the folder during the run' },
  );
}

function paddedBytes(kind: ColumnKind, length: number): number {
  return Math.ceil((length * columnTypes[kind].BYTES_PER_ELEMENT) / 8) * 8;
}
