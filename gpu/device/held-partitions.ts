import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { type Partition, partitionBytes, sharedArray, type SharedColumn } from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { WireMemory } from '../../engine/run/device.ts';
import { hostMeter } from '../../engine/run/memory-meter.ts';
import type { Wire } from '../../engine/run/step.ts';
import { strideOf, vectorLayouts } from './resources.ts';

/** The main thread's record of a partition on a GPU. */
export interface HeldPartition {
  /** The partition in host memory, as it was put or returned by a task. */
  readonly host?: Partition;
  /** True if the device may have newer contents than `host`, because a task wrote the partition. */
  readonly changed: boolean;
  /** Bytes of the device's memory. */
  readonly bytes: number;
  /** For a matrix that is stored only in float16: the bytes of its rows. */
  readonly halfBytes?: number;
  /** For a matrix: numbers of a row, with padding. */
  readonly stride?: number | undefined;
  /**
   * For a matrix whose host memory was given up here after the upload: that memory, so that `hasSame` can
   * recognize it. Absent once a task has written the matrix.
   */
  readonly source?: MatrixSource;
}

/**
 * The host memory from which a matrix was uploaded, as long as other code keeps it alive, and the matrix's
 * shape.
 */
interface MatrixSource extends RowShape {
  readonly memory: WeakRef<ArrayBufferLike>;
}

interface RowShape {
  readonly rows: number;
  /** Columns of a matrix without padding; 0 for other layouts. */
  readonly width: number;
}

/** The bounds of a device's memory, in bytes. */
export interface MemoryBounds {
  /** Of all partitions together. */
  readonly capacity: number;
  /** Of one buffer. */
  readonly binding: number;
}

/**
 * The partitions of one GPU by key. Counts their bytes on the device, and reports their copies in host memory
 * to the meter of host memory.
 */
export class HeldPartitions {
  readonly #held = new Map<string, HeldPartition>();
  readonly #device: { readonly place: Place; readonly name: string };
  readonly #bounds: MemoryBounds;
  #usedBytes = 0;

  /** `device`: its place, and its adapter's name for errors. */
  constructor(device: { readonly place: Place; readonly name: string }, bounds: MemoryBounds) {
    [this.#device, this.#bounds] = [device, bounds];
  }

  get(key: string): HeldPartition | undefined {
    return this.#held.get(key);
  }

  /** Replaces the partition that the key had. */
  hold(key: string, held: HeldPartition): void {
    this.forget(key);
    this.#held.set(key, held);
    if (held.host !== undefined) hostMeter.hold(held.host);
    this.#usedBytes += held.bytes;
  }

  forget(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#usedBytes -= held.bytes;
    if (held.host !== undefined) hostMeter.drop(held.host);
    this.#held.delete(key);
  }

  forgetAll(): void {
    for (const key of this.#held.keys()) this.forget(key);
  }

  /**
   * Gives up the copy in host memory, so that the partition is only on the device. Returns the bytes of the
   * copy.
   */
  leaveHost(key: string): number {
    const { host, bytes, changed, stride } = this.#held.get(key) ?? {};
    if (host === undefined || bytes === undefined) return 0;
    this.#held.set(key, {
      changed: true,
      bytes,
      stride,
      ...(isMatrixOfItsOwn(host) &&
        !changed && { source: { memory: new WeakRef(host.columns.values.buffer), ...shapeOf(host) } }),
    });
    hostMeter.drop(host);
    return partitionBytes(host);
  }

  /**
   * True if the device already has these ratings or factors, so that they need not be uploaded again: the
   * same memory and shape, and no task has written them.
   */
  hasSame(key: string, partition: Partition): boolean {
    const { source, host, changed } = this.#held.get(key) ?? {};
    if (source !== undefined)
      return (
        isMatrixOfItsOwn(partition) &&
        isSameShape(shapeOf(partition), source) &&
        source.memory.deref() === partition.columns.values.buffer
      );
    if (host === undefined || changed) return false;
    const [known, given] = [host.columns, Object.entries(partition.columns)];
    return (
      (partition.layout === 'rating-block' || partition.layout === 'factors') &&
      partition.layout === host.layout &&
      isSameShape(shapeOf(partition), shapeOf(host)) &&
      given.length === Object.keys(known).length &&
      given.every(([name, column]) => isSame(known[name], column))
    );
  }

  /** Notes that a task writes the partition on the device. */
  written(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    const { source: _, ...rest } = held;
    this.#held.set(key, { ...rest, changed: true });
  }

  /**
   * Throws CapacityError if the device has no room for `bytes`, or, for data on the device, cannot bind a
   * buffer of `largest` bytes.
   */
  requireRoom(key: string, bytes: number, largest: number, onDevice: boolean): void {
    const { place, name } = this.#device;
    const { capacity, binding } = this.#bounds;
    if (onDevice && largest > binding) {
      throw new CapacityError(
        `${key} needs ${formatBytes(largest)} (${largest} bytes) in one buffer, but ${name} binds at ` +
          `most ${formatBytes(binding)} (${binding} bytes)`,
        {
          phase: 'gpu',
          device: place,
          advice: 'Use a smaller rank, fewer ratings, or device cpu',
        },
      );
    }
    const have = capacity - this.#usedBytes;
    if (bytes <= have) return;
    throw new CapacityError(`the memory given to the GPU is full: need ${bytes} bytes, have ${have}`, {
      phase: 'gpu',
      device: place,
      advice: 'Use a smaller rank, give it more, or use device cpu',
    });
  }
}

/** True for a matrix of factors that is the only content of its memory. */
function isMatrixOfItsOwn({ layout, columns }: Partition): boolean {
  return layout === 'factors' && columns.values.byteLength === columns.values.buffer.byteLength;
}

function shapeOf({ layout, rows, columns, width }: Partition): RowShape {
  return { rows, width: layout !== 'factors' || rows === 0 ? 0 : (width ?? columns.values.length / rows) };
}

function isSameShape(one: RowShape, other: RowShape): boolean {
  return one.rows === other.rows && one.width === other.width;
}

function isSame(one: SharedColumn | undefined, other: SharedColumn): boolean {
  return (
    one === other ||
    (one?.buffer === other.buffer && one.byteOffset === other.byteOffset && one.length === other.length)
  );
}

/** Numbers of a row of a matrix on the device, with padding; undefined for other partitions. */
export function deviceStride({ layout, rows, columns, width }: Partition): number | undefined {
  if (layout !== 'factors' || rows === 0) return undefined;
  return strideOf(width ?? columns.values.length / rows);
}

/** Bytes that a partition takes on the device once a task names it; 0 for layouts that stay on the host. */
export function deviceBytes(partition: Partition): number {
  const { layout, rows } = partition;
  if (layout === 'factors') return 4 * rows * (deviceStride(partition) ?? 0);
  return layout === 'rating-block' || layout === 'rating-list' || vectorLayouts.includes(layout)
    ? partitionBytes(partition)
    : 0;
}

/**
 * The columns of rows that are sent to another device: a view of the first `bytes` bytes of the memory that
 * was allocated for them, or a reference to memory files. `form` is the type of their numbers.
 */
export function wireIn(
  memory: WireMemory,
  form: Wire,
  bytes: number,
): Pick<Partition, 'columns' | 'inFiles'> {
  if ('files' in memory) {
    const arrived = new Int32Array(new SharedArrayBuffer(4 * Math.ceil(bytes / memory.pieceBytes)));
    return { columns: {}, inFiles: { memory, form, bytes, arrived } };
  }
  return {
    columns: {
      values:
        form === 'i8'
          ? new Uint8Array(memory, 0, bytes)
          : form === 'f16'
            ? new Uint16Array(memory, 0, bytes / 2)
            : new Float32Array(memory, 0, bytes / 4),
    },
  };
}

/** The column itself when its memory is shared, else a copy, in shared memory where the program has it. */
export function sharedCopy<Column extends SharedColumn>(column: Column): Column {
  if (typeof SharedArrayBuffer !== 'undefined' && column.buffer instanceof SharedArrayBuffer) return column;
  const bytes = sharedArray(Uint8Array, column.byteLength);
  bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
  return new (column.constructor as new (buffer: ArrayBufferLike) => Column)(bytes.buffer);
}
