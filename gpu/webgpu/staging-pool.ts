import { nextTurn } from './polls.ts';

/** Size and number of the buffers of a pool. */
export interface StagingSize {
  readonly bytes: number;
  readonly buffers: number;
}

/** Mapped buffers for transfers in one direction, shared by all transfers and created on demand. */
export class StagingPool {
  readonly #device: GPUDevice;
  readonly #buffers: Omit<GPUBufferDescriptor, 'size'>;
  readonly #size: StagingSize;
  readonly #all: GPUBuffer[] = [];
  readonly #ready: { readonly buffer: GPUBuffer; readonly when: Promise<void>; done: boolean }[] = [];

  /** `buffers`: usage of the buffers, and a label for errors. */
  constructor(device: GPUDevice, buffers: Omit<GPUBufferDescriptor, 'size'>, size: StagingSize) {
    this.#device = device;
    this.#buffers = buffers;
    this.#size = size;
  }

  /**
   * Takes a free buffer. If none is free, creates one, or waits for the next one if the pool has its full
   * size. Creating a buffer blocks the thread for a millisecond or more; afterwards the thread sends pending
   * answers before it continues.
   */
  async take(): Promise<GPUBuffer> {
    const free = this.#ready.findIndex(({ done }) => done);
    if (free < 0 && this.#all.length < this.#size.buffers) return this.#make();
    const [next] = this.#ready.splice(Math.max(0, free), 1);
    if (next === undefined)
      throw new Error(`staging pool ${this.#buffers.label}: all buffers are taken and none was given back`);
    await next.when;
    return next.buffer;
  }

  async #make(): Promise<GPUBuffer> {
    const buffer = this.#device.createBuffer({
      ...this.#buffers,
      size: this.#size.bytes,
      mappedAtCreation: (this.#buffers.usage & GPUBufferUsage.MAP_WRITE) !== 0,
    });
    this.#all.push(buffer);
    await nextTurn();
    return buffer;
  }

  /**
   * Returns a buffer to the pool. It can be taken again once `when` has settled. If `when` rejects, the
   * transfer that used the buffer reports the error, and the buffer stays usable: the next transfer maps it
   * again, which fails if the device is lost.
   */
  give(buffer: GPUBuffer, when: Promise<unknown>): void {
    const ready = {
      buffer,
      done: false,
      when: Promise.allSettled([when]).then(() => void (ready.done = true)),
    };
    this.#ready.push(ready);
  }

  /** Resolves when no promise of a buffer is pending. */
  async destroy(): Promise<void> {
    for (const buffer of this.#all) buffer.destroy();
    await Promise.all(this.#ready.map(({ when }) => when));
  }
}
