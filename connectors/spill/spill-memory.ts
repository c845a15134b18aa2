import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { CapacityError, DataError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import {
  type Partition,
  partitionKey,
  type PartitionRef,
  type SharedColumn,
} from '../../engine/partition.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { SPILL } from '../../engine/plan/place.ts';
import type { SpillSpace } from '../../engine/run/context.ts';
import type { SpillStore } from '../../engine/run/device.ts';
import { MemoryMeter } from '../../engine/run/memory-meter.ts';
import { StagedCopies } from '../../engine/run/staged-copies.ts';
import { arrowFile, type ColumnKind, type PlacedColumn } from './arrow-file.ts';
import { StagingBuffers } from './staging-buffers.ts';

const info: DeviceInfo = {
  place: SPILL,
  kind: 'cpu',
  parallelism: 0,
  inOrder: false,
  wholePasses: false,
  ownMemory: false,
  capacityBytes: null,
  strideStep: 1,
  description: 'files of the spill folder',
};

const kinds: Readonly<
  Record<
    ColumnKind,
    {
      new (buffer: SharedArrayBuffer, at: number, length: number): SharedColumn;
      readonly BYTES_PER_ELEMENT: number;
    }
  >
> = { Int32Array, Uint32Array, Float32Array, Float64Array, Uint8Array, Uint16Array, BigInt64Array };

interface Spilled {
  readonly file: string;
  readonly fileBytes: number;
  readonly layout: string;
  readonly rows: number;
  readonly columns: Readonly<Record<string, PlacedColumn>>;
}

/**
 * Partitions in Arrow files of the spill folder, a file each. They are read into memory that is used again
 * once it is given back.
 */
export class SpillMemory implements SpillStore {
  readonly info = info;
  /** Bytes of the files. */
  readonly memory = new MemoryMeter();
  readonly #space: SpillSpace;
  readonly #stored = new Map<string, Spilled>();
  readonly #staging = new StagingBuffers();
  readonly copies = new StagedCopies(({ columns }) => {
    const [first] = Object.values(columns);
    if (first?.buffer instanceof SharedArrayBuffer) this.#staging.give(first.buffer);
  });

  constructor(space: SpillSpace) {
    this.#space = space;
  }

  async write(ref: PartitionRef, partition: Partition): Promise<void> {
    const file = await this.#space.newFile();
    const { chunks, bytes, columns } = arrowFile([partition]);
    try {
      const handle = await open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
      try {
        for (const chunk of chunks) await writeAll(handle, chunk);
      } finally {
        await handle.close();
      }
    } catch (error) {
      await rm(file, { force: true });
      throw problemOf(error, file, bytes);
    }
    const { layout, rows } = partition;
    this.memory.add(bytes);
    this.#stored.set(partitionKey(ref), { file, fileBytes: bytes, layout, rows, columns: columns[0] });
  }

  async fetch(ref: PartitionRef): Promise<Partition> {
    const stored = this.#stored.get(partitionKey(ref));
    if (stored === undefined) throw new Error(`partition ${partitionKey(ref)} was not spilled`);
    const { file, fileBytes, layout, rows } = stored;
    const columns = Object.entries(stored.columns);
    const buffer = this.#staging.take(
      columns.reduce((sum, [, { kind, length }]) => sum + paddedBytes(kind, length), 0),
    );
    try {
      const handle = await open(file, constants.O_RDONLY);
      try {
        if ((await handle.stat()).size !== fileBytes) throw changed(file);
        const read: Record<string, SharedColumn> = {};
        let next = 0;
        for (const [name, { kind, at, length }] of columns) {
          const column = new kinds[kind](buffer, next, length);
          await readAll(handle, new Uint8Array(buffer, next, column.byteLength), at, file);
          read[name] = column;
          next += paddedBytes(kind, length);
        }
        return { layout, rows, columns: read, reused: true };
      } finally {
        await handle.close();
      }
    } catch (error) {
      this.#staging.give(buffer);
      throw problemOf(error, file, 0);
    }
  }

  release(ref: PartitionRef): void {
    const stored = this.#stored.get(partitionKey(ref));
    if (stored === undefined) return;
    this.#stored.delete(partitionKey(ref));
    this.memory.add(-stored.fileBytes);
    // The whole folder goes at the end, so a file that cannot be removed now does no harm.
    rm(stored.file, { force: true }).catch(() => undefined);
  }

  put(): never {
    throw new Error('partitions are written to the spill folder');
  }

  allocate(): never {
    throw new Error('nothing is allocated in the spill folder');
  }

  run(): Promise<never> {
    return Promise.reject(new Error('the spill folder runs no tasks'));
  }

  async trim(): Promise<void> {
    this.copies.clear();
    this.#staging.clear();
  }

  async close(): Promise<void> {
    for (const { fileBytes } of this.#stored.values()) this.memory.add(-fileBytes);
    this.#stored.clear();
    this.#staging.clear();
  }
}

function paddedBytes(kind: ColumnKind, length: number): number {
  return Math.ceil((length * kinds[kind].BYTES_PER_ELEMENT) / 8) * 8;
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;)
    written += (await handle.write(bytes, written, bytes.length - written)).bytesWritten;
}

async function readAll(handle: FileHandle, bytes: Uint8Array, at: number, file: string): Promise<void> {
  for (let filled = 0; filled < bytes.length;) {
    const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, at + filled);
    if (bytesRead === 0) throw changed(file);
    filled += bytesRead;
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
  return code === 'ENOENT' ? changed(file) : error;
}
