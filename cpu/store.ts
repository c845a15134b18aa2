import { CapacityError } from '../engine/errors.ts';
import { formatBytes } from '../engine/format.ts';
import { copyNumbers } from '../engine/numbers/half.ts';
import {
  type MatrixShape,
  type Partition,
  partitionBytes,
  partitionKey,
  type PartitionRef,
  type SpilledPartition,
  pagedArray,
  sharedArray,
} from '../engine/partition.ts';
import { hostMeter, MemoryMeter } from '../engine/run/memory-meter.ts';
import type { Task } from '../engine/task.ts';
import { sentPartition, type SentPartition } from '../engine/threads/wide-views.ts';
import { type MatrixView, SCRATCH_BYTES, STRIDE_STEP } from './handler.ts';

const PAGE = 65_536;
const ALIGNMENT = 64;

/**
 * Allocates aligned ranges of a growing WebAssembly memory: first fit in a list of free ranges, neighbours
 * merged. The main thread owns it; workers only receive addresses.
 */
class Arena {
  readonly memory: WebAssembly.Memory;
  /** Bytes that may be allocated in total. */
  readonly capacityBytes: number;
  #free: { start: number; end: number }[] = [];
  readonly #sizes = new Map<number, number>();
  #end: number;
  readonly meter = new MemoryMeter();

  constructor(memory: WebAssembly.Memory, maximumPages: number) {
    this.memory = memory;
    this.#end = memory.buffer.byteLength;
    this.capacityBytes = maximumPages * PAGE - PAGE;
    // Address 0 stays unused, so that a forgotten pointer is not a valid one.
    this.#free.push({ start: PAGE, end: this.#end });
  }

  get allocatedBytes(): number {
    let bytes = 0;
    for (const size of this.#sizes.values()) bytes += size;
    return bytes;
  }

  /**
   * Returns the address of `bytes` new bytes, whose contents are undefined. Throws CapacityError, with the
   * bytes needed and available in its message.
   */
  allocate(bytes: number): number {
    const size = Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
    const found = this.#free.findIndex((range) => range.end - range.start >= size);
    const range = found >= 0 ? this.#free[found] : this.#grow(size);
    const start = range.start;
    range.start += size;
    this.#free = this.#free.filter((candidate) => candidate.end > candidate.start);
    this.#sizes.set(start, size);
    this.meter.add(size);
    return start;
  }

  free(start: number): void {
    const size = this.#sizes.get(start);
    if (size === undefined) return;
    this.#sizes.delete(start);
    this.meter.add(-size);
    this.#free.push({ start, end: start + size });
    this.#free.sort((left, right) => left.start - right.start);
    const merged: { start: number; end: number }[] = [];
    for (const range of this.#free) {
      const last = merged.at(-1);
      if (last && last.end === range.start) last.end = range.end;
      else merged.push(range);
    }
    this.#free = merged;
  }

  #grow(size: number): { start: number; end: number } {
    const last = this.#free.at(-1);
    const open = last && last.end === this.#end ? last : undefined;
    const missing = size - (open ? open.end - open.start : 0);
    const pages = Math.ceil(missing / PAGE);
    if (this.#end + pages * PAGE > this.capacityBytes + PAGE) {
      const have = this.capacityBytes - this.allocatedBytes;
      throw new CapacityError(
        `the CPU device's WebAssembly memory is full: need ${size} bytes, have ${have}`,
        { advice: 'Use a smaller rank, or fewer users and items' },
      );
    }
    try {
      this.memory.grow(pages);
    } catch (cause) {
      const [more, held] = [pages * PAGE, this.#end].map(formatBytes);
      throw new CapacityError(
        `the system gives the CPU device no more memory: ${more} are needed in addition to the ` +
          `${held} that it has`,
        {
          advice:
            'Raise the limit of the process (ulimit -v, or the limit of its container), close other ' +
            'programs, or use fewer workers',
          cause,
        },
      );
    }
    const end = this.#end + pages * PAGE;
    this.#end = end;
    if (open) {
      open.end = end;
      return open;
    }
    const range = { start: end - pages * PAGE, end };
    this.#free.push(range);
    return range;
  }
}

/** Pages of the largest WebAssembly memory, 4 GiB. */
export const MAXIMUM_PAGES = 65_536;

/** The parts of a store that differ between Node and a page. */
export interface StoreHost {
  /** The memory of the kernels: at least 2 pages, at most MAXIMUM_PAGES. */
  readonly memory: WebAssembly.Memory;
  /** Reads a partition from its file; absent where partitions stay in memory. */
  readonly readSpilled?: (spilled: SpilledPartition) => Partition;
}

type Stored = { readonly host: Partition } | { readonly matrix: MatrixView };

/** The partitions that a task reads and writes, as they are sent to a thread: contents or addresses. */
export interface TaskData {
  readonly partitions: Readonly<Record<string, SentPartition>>;
  readonly matrices: Readonly<Record<string, MatrixView>>;
}

/**
 * The partitions of a CPU device. Factor matrices are in one WebAssembly memory that all threads share, with
 * rows padded to a stride. Other partitions stay in their SharedArrayBuffers. A matrix is copied into the
 * padded form when it is put, and back into plain rows when it is read.
 */
export class CpuStore {
  readonly memory: WebAssembly.Memory;
  readonly meter: MemoryMeter;
  /** The address of each thread's scratch. */
  readonly scratch: readonly number[];
  readonly capacityBytes: number;
  readonly #arena: Arena;
  readonly #stored = new Map<string, Stored>();
  readonly #readSpilled: StoreHost['readSpilled'];
  #hostBytes = 0;

  constructor(threads: number, { memory, readSpilled }: StoreHost) {
    this.memory = memory;
    this.#readSpilled = readSpilled;
    this.#arena = new Arena(this.memory, MAXIMUM_PAGES);
    this.scratch = Array.from({ length: threads }, () => this.#arena.allocate(SCRATCH_BYTES));
    const scratchBytes = threads * SCRATCH_BYTES;
    this.meter = this.#arena.meter;
    this.meter.add(-scratchBytes);
    this.capacityBytes = this.#arena.capacityBytes - scratchBytes;
  }

  /** Bytes of the partitions in host memory. */
  get hostBytes(): number {
    return this.#hostBytes;
  }

  put(ref: PartitionRef, partition: Partition): void {
    if (partition.layout === 'factors') this.#upload(ref, partition);
    else this.#keep(ref, partition);
  }

  allocate(
    ref: PartitionRef,
    { layout = 'factors', contents = 'zeros', isSent, ...shape }: MatrixShape,
  ): void {
    const { rows, columns, stride } = shape;
    if (isSent)
      return this.#keep(ref, {
        layout,
        rows,
        width: columns,
        columns: { values: pagedArray(Float32Array, rows * stride) },
      });
    if (layout !== 'factors')
      return this.put(ref, { layout, rows, columns: { values: sharedArray(Float32Array, rows * columns) } });
    const matrix = this.#allocateMatrix(ref, shape);
    if (contents === 'zeros') this.#numbersOf(matrix).fill(0);
  }

  get(ref: PartitionRef): Stored | undefined {
    return this.#stored.get(partitionKey(ref));
  }

  /** The inputs and outputs of a task that are stored here. */
  dataOf({ inputs, outputs }: Pick<Task, 'inputs' | 'outputs'>): TaskData {
    const partitions: Record<string, SentPartition> = {};
    const matrices: Record<string, MatrixView> = {};
    for (const [name, ref] of [...Object.entries(inputs), ...Object.entries(outputs)]) {
      const stored = this.get(ref);
      if (stored === undefined) continue;
      if ('host' in stored) partitions[name] = sentPartition(stored.host);
      else matrices[name] = stored.matrix;
    }
    return { partitions, matrices };
  }

  /**
   * Returns a partition as host memory: a copy if it is a matrix, `into` this memory if given. Undefined if it
   * is not stored here.
   */
  read(ref: PartitionRef, into?: Float32Array): Partition | undefined {
    const stored = this.get(ref);
    if (stored === undefined) return undefined;
    if ('matrix' in stored) return this.#download(stored.matrix, into);
    const { spilled } = stored.host;
    return spilled && this.#readSpilled ? this.#readSpilled(spilled) : stored.host;
  }

  /** Removes a partition. Returns the bytes of host memory that garbage collection can now reclaim. */
  release(ref: PartitionRef): number {
    const stored = this.get(ref);
    if (stored === undefined) return 0;
    this.#stored.delete(partitionKey(ref));
    if ('matrix' in stored) {
      this.#arena.free(stored.matrix.pointer);
      return 0;
    }
    const bytes = partitionBytes(stored.host);
    this.#hostBytes -= bytes;
    hostMeter.drop(stored.host);
    return stored.host.reused ? 0 : bytes;
  }

  clear(): void {
    for (const stored of this.#stored.values()) if ('host' in stored) hostMeter.drop(stored.host);
    this.#stored.clear();
  }

  #keep(ref: PartitionRef, partition: Partition): void {
    const old = this.get(ref);
    this.#hostBytes += partitionBytes(partition);
    hostMeter.hold(partition);
    if (old && 'host' in old) {
      this.#hostBytes -= partitionBytes(old.host);
      hostMeter.drop(old.host);
    }
    this.#stored.set(partitionKey(ref), { host: partition });
  }

  #allocateMatrix(ref: PartitionRef, { rows, columns, stride }: Omit<MatrixView, 'pointer'>): MatrixView {
    const matrix = { pointer: this.#arena.allocate(rows * stride * 4), rows, columns, stride };
    this.#stored.set(partitionKey(ref), { matrix });
    return matrix;
  }

  #numbersOf({ pointer, rows, stride }: MatrixView): Float32Array {
    return new Float32Array(this.memory.buffer, pointer, rows * stride);
  }

  #upload(ref: PartitionRef, { rows, columns, packed }: Partition): void {
    const values = columns.values as Float32Array | Uint16Array;
    const rank = rows === 0 ? 0 : values.length / rows;
    const stride = packed ? rank : Math.ceil(rank / STRIDE_STEP) * STRIDE_STEP;
    const target = this.#numbersOf(this.#allocateMatrix(ref, { rows, columns: rank, stride }));
    if (stride === rank) return copyNumbers(values, target);
    target.fill(0);
    for (let row = 0; row < rows; row++)
      copyNumbers(
        values.subarray(row * rank, (row + 1) * rank),
        target.subarray(row * stride, row * stride + rank),
      );
  }

  #download(matrix: MatrixView, into?: Float32Array): Partition {
    const { rows, columns, stride } = matrix;
    const padded = this.#numbersOf(matrix);
    const values = into ?? sharedArray(Float32Array, rows * columns);
    if (stride === columns) values.set(padded);
    else
      for (let row = 0; row < rows; row++)
        values.set(padded.subarray(row * stride, row * stride + columns), row * columns);
    const packed = stride % STRIDE_STEP === 0 ? {} : { packed: true };
    return { layout: 'factors', rows, columns: { values }, ...packed };
  }
}
