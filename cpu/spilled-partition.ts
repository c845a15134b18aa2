import { closeSync, fstatSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { CapacityError, DataError } from '../engine/errors.ts';
import { formatBytes } from '../engine/format.ts';
import type { JsonObject } from '../engine/json.ts';
import { type Partition, partitionBytes, type SharedColumn } from '../engine/partition.ts';

/** A partition whose columns lie in a file, as plain JSON: all that another thread needs to read it. */
export type SpilledPartition = JsonObject & {
  readonly file: string;
  readonly layout: string;
  readonly rows: number;
  /** By name: the typed array's kind, its first byte in the file, and its length in elements. */
  readonly columns: Readonly<
    Record<string, { readonly kind: keyof typeof kinds; readonly at: number; readonly length: number }>
  >;
};

const kinds = { Int32Array, Uint32Array, Float32Array, Float64Array, Uint8Array, Uint16Array, BigInt64Array };

/** Head of a file: eight letters that name the format, and the number of its bytes as Float64. */
const HEAD_BYTES = 16;
const MAGIC = 'FFSPILL1';

/**
 * Writes partitions to a new file, one column behind the other. Throws CapacityError with the bytes where the
 * disk is full; leaves no file then.
 */
export function writeSpilled(file: string, partitions: readonly Partition[]): SpilledPartition[] {
  let at = HEAD_BYTES;
  const spilled = partitions.map(({ layout, rows, columns }): SpilledPartition => {
    const placed = Object.entries(columns).map(([name, column]) => {
      const place = { kind: column.constructor.name as keyof typeof kinds, at, length: column.length };
      at += Math.ceil(column.byteLength / 8) * 8;
      return [name, place] as const;
    });
    return { file, layout, rows, columns: Object.fromEntries(placed) };
  });
  const head = new Uint8Array(HEAD_BYTES);
  head.set(new TextEncoder().encode(MAGIC));
  new DataView(head.buffer).setFloat64(8, at, true);
  try {
    const handle = openSync(file, 'wx', 0o600);
    try {
      writeAll(handle, head, 0);
      spilled.forEach(({ columns }, i) => {
        for (const [name, { at: place }] of Object.entries(columns))
          writeAll(handle, bytesOf(partitions[i].columns[name]), place);
      });
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    rmSync(file, { force: true });
    throw problemOf(
      error,
      file,
      partitions.reduce((sum, partition) => sum + partitionBytes(partition), 0),
    );
  }
  return spilled;
}

/** Reads a partition back. Throws DataError for a file that is not the one that was written. */
export function readSpilled({ file, layout, rows, columns }: SpilledPartition): Partition {
  let handle: number | undefined;
  try {
    handle = openSync(file, 'r');
    checkHead(handle, file);
    const read: Record<string, SharedColumn> = {};
    for (const [name, { kind, at, length }] of Object.entries(columns)) {
      const column = new kinds[kind](length);
      readAll(handle, bytesOf(column), at, file);
      read[name] = column;
    }
    return { layout, rows, columns: read };
  } catch (error) {
    throw problemOf(error, file, 0);
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

function checkHead(handle: number, file: string): void {
  const head = new Uint8Array(HEAD_BYTES);
  readAll(handle, head, 0, file);
  const bytes = new DataView(head.buffer).getFloat64(8, true);
  // The last column is padded in the sizes, not in the file.
  if (new TextDecoder().decode(head.subarray(0, 8)) !== MAGIC || bytes - fstatSync(handle).size >= 8)
    throw changed(file);
}

function bytesOf({ buffer, byteOffset, byteLength }: SharedColumn): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function writeAll(handle: number, bytes: Uint8Array, at: number): void {
  for (let written = 0; written < bytes.length;)
    written += writeSync(handle, bytes, written, bytes.length - written, at + written);
}

function readAll(handle: number, bytes: Uint8Array, at: number, file: string): void {
  for (let filled = 0; filled < bytes.length;) {
    const read = readSync(handle, bytes, filled, bytes.length - filled, at + filled);
    if (read === 0) throw changed(file);
    filled += read;
  }
}

function changed(file: string): DataError {
  return new DataError('a spill file was changed by another program', {
    phase: 'spill',
    file,
    advice: 'Leave the folder alone while the run goes on',
  });
}

function problemOf(error: unknown, file: string, bytes: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') {
    return new CapacityError(`the disk is full: ${formatBytes(bytes)} (${bytes} bytes) more did not fit`, {
      phase: 'spill',
      file,
      advice: 'Free some space, choose another spillDir, or raise memoryBudget',
      cause: error,
    });
  }
  if (code === 'ENOENT') return changed(file);
  return error;
}
