import { openSync, readSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import {
  type MatrixShape,
  type Partition,
  partitionKey,
  type PartitionRef,
  type SharedColumn,
  type SpilledPartition,
} from '../../engine/partition.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { SPILL } from '../../engine/plan/place.ts';
import { closeRead, closeReader } from '../../engine/regular-file.ts';
import type { SpillStore } from '../../engine/run/device.ts';
import { MemoryMeter } from '../../engine/run/memory-meter.ts';
import { StagedCopies } from '../../engine/run/staged-copies.ts';
import { readPartition, readProblem, type WrittenFile } from '../../engine/spill/spilled-partition.ts';
import type { SpillFolder } from './spill-folder.ts';

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

/** A file, and the number of its partitions still in use. */
interface SpillFile {
  readonly bytes: number;
  left: number;
}

/**
 * Partitions in files of the spill folder. `fetch` reads into buffers that are reused after they are
 * released.
 */
export class SpillMemory implements SpillStore {
  readonly info = info;
  /** Bytes in the files. */
  readonly memory = new MemoryMeter();
  readonly #folder: SpillFolder;
  readonly #stored = new Map<string, { readonly spilled: SpilledPartition; readonly file: SpillFile }>();
  /** Matrices of zeros, which have no file. */
  readonly #zeros = new Map<string, MatrixShape>();
  readonly #staging = new StagingBuffers();
  readonly copies = new StagedCopies(({ columns, spilled }, ref) => {
    const [first] = Object.values(columns);
    if (spilled !== undefined) this.release(ref);
    else if (first?.buffer instanceof SharedArrayBuffer) this.#staging.give(first.buffer);
  });

  constructor(folder: SpillFolder) {
    this.#folder = folder;
  }

  async write(
    refs: readonly PartitionRef[],
    writer: (file: string) => Promise<WrittenFile>,
  ): Promise<Partition[]> {
    const { bytes, directory } = await writer(await this.#folder.newFile());
    const file = { bytes, left: refs.length };
    this.memory.add(bytes);
    return directory.map((spilled, i) => {
      this.release(refs[i]);
      this.#stored.set(partitionKey(refs[i]), { spilled, file });
      return { layout: spilled.layout, rows: spilled.rows, columns: {}, spilled };
    });
  }

  requireRoom(bytes: number): Promise<void> {
    return this.#folder.requireRoom(bytes);
  }

  async fetch(ref: PartitionRef): Promise<Partition> {
    const stored = this.#stored.get(partitionKey(ref));
    if (stored === undefined) return this.#zerosOf(ref);
    const { spilled } = stored;
    const handle = await open(spilled.file).catch((error: unknown) => {
      throw readProblem(error, spilled);
    });
    let buffer: SharedArrayBuffer | undefined;
    try {
      const reads = readPartition(spilled, (bytes) => (buffer = this.#staging.take(bytes)), crc32);
      let next = reads.next();
      while (!next.done) {
        const { bytes, at } = next.value;
        next = reads.next((await handle.read(bytes, 0, bytes.length, at)).bytesRead);
      }
      return { ...next.value, reused: true };
    } catch (error) {
      if (buffer !== undefined) this.#staging.give(buffer);
      throw readProblem(error, spilled);
    } finally {
      await closeReader(handle);
    }
  }

  #zerosOf(ref: PartitionRef): Partition {
    const shape = this.#zeros.get(partitionKey(ref));
    if (shape === undefined) throw new Error(`partition ${partitionKey(ref)} was not spilled`);
    const { layout = 'factors', rows, columns } = shape;
    const values = new Float32Array(this.#staging.take(4 * rows * columns), 0, rows * columns).fill(0);
    return { layout, rows, columns: { values }, reused: true };
  }

  keep(ref: PartitionRef): Partition {
    const stored = this.#stored.get(partitionKey(ref));
    if (stored === undefined) throw new Error(`partition ${partitionKey(ref)} was not spilled`);
    const { spilled, file } = stored;
    file.left++;
    let dropped = false;
    const drop = () => {
      if (!dropped) this.#leave(spilled.file, file);
      dropped = true;
    };
    const { layout, rows } = spilled;
    return { layout, rows, columns: {}, stored: { read: () => readColumn(spilled), drop } };
  }

  release(ref: PartitionRef): void {
    const key = partitionKey(ref);
    const stored = this.#stored.get(key);
    this.#zeros.delete(key);
    this.#stored.delete(key);
    if (stored !== undefined) this.#leave(stored.spilled.file, stored.file);
  }

  #leave(path: string, file: SpillFile): void {
    file.left--;
    if (file.left > 0) return;
    this.memory.add(-file.bytes);
    // The whole folder is removed at the end, so a failure to remove a file now does no harm.
    rm(path, { force: true }).catch(() => undefined);
  }

  put(): never {
    throw new Error('partitions are written to the spill folder');
  }

  allocate(ref: PartitionRef, shape: MatrixShape): void {
    this.#zeros.set(partitionKey(ref), shape);
  }

  run(): Promise<never> {
    return Promise.reject(new Error('the spill folder runs no tasks'));
  }

  async trim(): Promise<void> {
    this.#staging.clear();
  }

  /** Removes the folder. */
  async close(): Promise<void> {
    this.#stored.clear();
    this.#zeros.clear();
    this.#staging.clear();
    await this.#folder.close();
  }
}

/** Reads the only column of a partition in this thread. Throws DataError if its file was changed. */
function readColumn(spilled: SpilledPartition): SharedColumn {
  let handle: number | undefined;
  try {
    handle = openSync(spilled.file, 'r');
    const reads = readPartition(spilled, (bytes) => new ArrayBuffer(bytes), crc32);
    let next = reads.next();
    while (!next.done) {
      const { bytes, at } = next.value;
      next = reads.next(readSync(handle, bytes, 0, bytes.length, at));
    }
    const [column] = Object.values(next.value.columns);
    return column;
  } catch (error) {
    throw readProblem(error, spilled);
  } finally {
    if (handle !== undefined) closeRead(handle);
  }
}

/** Most unused buffers to keep: enough for two visits of a stage to data in files. */
const MOST_IDLE = 4;

/** Sizes are multiples of this, so that partitions of about the same size can share buffers. */
const STEP_BYTES = 1 << 20;

/**
 * A pool of shared memory. Released shared memory is garbage-collected late, so new memory for each partition
 * would pile up.
 */
class StagingBuffers {
  /** Largest first. */
  readonly #idle: SharedArrayBuffer[] = [];

  /** A buffer of at least `bytes` bytes; it may have old contents. */
  take(bytes: number): SharedArrayBuffer {
    const smallest = this.#idle.findLastIndex(({ byteLength }) => byteLength >= bytes);
    if (smallest >= 0) return this.#idle.splice(smallest, 1)[0];
    return new SharedArrayBuffer(Math.max(1, Math.ceil(bytes / STEP_BYTES)) * STEP_BYTES);
  }

  /** Drops the smallest buffers if there are too many. */
  give(buffer: SharedArrayBuffer): void {
    this.#idle.push(buffer);
    this.#idle.sort((left, right) => right.byteLength - left.byteLength);
    this.#idle.length = Math.min(this.#idle.length, MOST_IDLE);
  }

  clear(): void {
    this.#idle.length = 0;
  }
}
