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

  /** Fewer than 0 are freed bytes. */
  add(bytes: number): void {
    this.#now += bytes;
    this.#peak = Math.max(this.#peak, this.#now);
  }

  restart(): void {
    this.#peak = this.#now;
  }
}

/** Counts the memory of partitions that devices and stores of this process hold; what several hold counts once. */
class HostMeter extends MemoryMeter {
  readonly #holders = new Map<ArrayBufferLike, number>();

  hold({ columns }: Partition): void {
    for (const { buffer } of Object.values(columns)) {
      const holders = this.#holders.get(buffer) ?? 0;
      if (holders === 0) this.add(buffer.byteLength);
      this.#holders.set(buffer, holders + 1);
    }
  }

  drop({ columns }: Partition): void {
    for (const { buffer } of Object.values(columns)) {
      const holders = this.#holders.get(buffer) ?? 0;
      if (holders > 1) this.#holders.set(buffer, holders - 1);
      else if (this.#holders.delete(buffer)) this.add(-buffer.byteLength);
    }
  }
}

/** Host memory, of which a process has one. */
export const hostMeter = new HostMeter();
