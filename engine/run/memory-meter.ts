import type { Partition } from '../partition.ts';

/** Bytes that are allocated now, and their peak since the meter was last restarted. */
export class MemoryMeter {
  #now = 0;
  #peak = 0;

  get now(): number {
    return this.#now;
  }

  get peak(): number {
    return this.#peak;
  }

  /** A negative number for freed bytes. */
  add(bytes: number): void {
    this.#now += bytes;
    this.#peak = Math.max(this.#peak, this.#now);
  }

  restart(): void {
    this.#peak = this.#now;
  }
}

/**
 * Counts the memory of partitions that devices and stores of this process hold. Memory that several of them
 * hold counts once.
 */
class HostMeter extends MemoryMeter {
  readonly #holders = new Map<object, number>();

  hold(partition: Partition): void {
    for (const [memory, bytes] of memoriesOf(partition)) {
      const holders = this.#holders.get(memory) ?? 0;
      if (holders === 0) this.add(bytes);
      this.#holders.set(memory, holders + 1);
    }
  }

  drop(partition: Partition): void {
    for (const [memory, bytes] of memoriesOf(partition)) {
      const holders = this.#holders.get(memory) ?? 0;
      if (holders > 1) this.#holders.set(memory, holders - 1);
      else if (this.#holders.delete(memory)) this.add(-bytes);
    }
  }
}

function memoriesOf({ columns, inFiles }: Partition): (readonly [object, number])[] {
  const ofColumns = Object.values(columns).map(({ buffer }) => [buffer, buffer.byteLength] as const);
  return inFiles === undefined ? ofColumns : [...ofColumns, [inFiles.memory, inFiles.memory.bytes]];
}

/** The meter of the process's host memory. */
export const hostMeter = new HostMeter();
