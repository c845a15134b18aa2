import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { type Partition, partitionBytes, type SharedColumn } from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import { hostMeter } from '../../engine/run/memory-meter.ts';

/** A partition of a device, as the main thread knows it. */
export interface HeldPartition {
  /** Of a partition that was put, or that a task gave. */
  readonly host?: Partition;
  /** A task may have written it on the device since. */
  readonly changed: boolean;
  /** Bytes of the device's memory. */
  readonly bytes: number;
  /** Of a matrix that is kept in float16 alone, those of its rows. */
  readonly halfBytes?: number;
  /** Of a matrix that left its host form behind and was not written since. */
  readonly source?: MatrixSource;
}

/** The origin of a matrix: its memory, for as long as others keep that, and its shape there. */
interface MatrixSource extends RowShape {
  readonly memory: WeakRef<ArrayBufferLike>;
}

interface RowShape {
  readonly rows: number;
  /** Columns of a matrix without padding, of other layouts 0. */
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
 * The partitions of a GPU by key: their host forms, which the meter of host memory counts, and the bytes that
 * they take on the device.
 */
export class HeldPartitions {
  readonly #held = new Map<string, HeldPartition>();
  readonly #device: { readonly place: Place; readonly name: string };
  readonly #bounds: MemoryBounds;
  #usedBytes = 0;

  /** `device`: its place, and the name of its adapter, for errors. */
  constructor(device: { readonly place: Place; readonly name: string }, bounds: MemoryBounds) {
    [this.#device, this.#bounds] = [device, bounds];
  }

  get(key: string): HeldPartition | undefined {
    return this.#held.get(key);
  }

  /** Takes the place of an older one of that key. */
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
   * The partition is on the device alone from now on. Gives the bytes of its host form, which this device no
   * longer holds.
   */
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
   * Ratings and factors that were put before need not go again: the same memory, in the same shape, which no
   * task has written.
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

  /** A task writes it on the device. */
  written(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    const { source: _, ...rest } = held;
    this.#held.set(key, { ...rest, changed: true });
  }

  /**
   * Throws CapacityError where the device has no room for so many `bytes`, or binds no buffer of the
   * `largest` array.
   */
  requireRoom(key: string, bytes: number, largest: number, onDevice: boolean): void {
    const { place, name } = this.#device;
    const { capacity, binding } = this.#bounds;
    if (onDevice && largest > binding) {
      throw new CapacityError(
        `${key} needs ${formatBytes(largest)} (${largest} bytes) in one buffer, but ${name} binds at most ${formatBytes(binding)} (${binding} bytes)`,
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

/** True for factors that have their memory to themselves. */
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
