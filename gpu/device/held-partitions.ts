import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { type Partition, partitionBytes, type SharedColumn } from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import { hostMeter } from '../../engine/run/memory-meter.ts';

/** A partition of a device, as the main thread knows it. */
export interface HeldPartition {
  /** The partition in host memory, as it was put or returned by a task. */
  readonly host?: Partition;
  /** True if a task may have changed the partition on the device after that. */
  readonly changed: boolean;
  /** Bytes of the device's memory. */
  readonly bytes: number;
  /** For a matrix that is stored only in float16: the bytes of its rows. */
  readonly halfBytes?: number;
  /** For a matrix that is no longer in host memory here and has not been written since: its source. */
  readonly source?: MatrixSource;
}

/**
 * The host memory from which a matrix was uploaded, if something else still holds it, and the matrix's shape
 * there.
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
 * The partitions of a GPU by key: their copies in host memory, if any, which count as host memory; and their
 * bytes on the device.
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

  /** Drops the host form: the partition is then on the device alone. Returns the bytes of the host form. */
  leaveHost(key: string): number {
    const { host, bytes, changed } = this.#held.get(key) ?? {};
    if (host === undefined || bytes === undefined) return 0;
    this.#held.set(key, {
      changed: true,
      bytes,
      ...(isMatrixOfItsOwn(host) &&
        !changed && { source: { memory: new WeakRef(host.columns.values.buffer), ...shapeOf(host) } }),
    });
    hostMeter.drop(host);
    return partitionBytes(host);
  }

  /**
   * True for ratings and factors that need not be uploaded again: same memory and shape, and no task has
   * written them.
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
   * Throws CapacityError if the device has no room for `bytes`, or cannot bind a buffer of `largest` bytes.
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

/** True for factors that fill their memory alone. */
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
