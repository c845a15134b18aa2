import { CapacityError } from '../engine/errors.ts';
import { formatBytes } from '../engine/format.ts';
import { MemoryMeter } from '../engine/run/memory-meter.ts';

const PAGE = 65_536;
const ALIGNMENT = 64;

/**
 * Allocates aligned ranges of a growing WebAssembly memory: first fit in a list of free ranges, neighbours
 * merged. The main thread owns it; workers only receive addresses.
 */
export class Arena {
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
