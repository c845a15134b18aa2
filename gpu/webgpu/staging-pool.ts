import { nextTurn } from './polls.ts';

/** The size of each buffer of a pool, and the number of them. */
export interface StagingSize {
  readonly bytes: number;
  readonly buffers: number;
}

/** Mapped buffers of one direction that transfers take in turn; made when they are first needed. */
export class StagingPool {
  readonly #device: GPUDevice;
  readonly #buffers: Omit<GPUBufferDescriptor, 'size'>;
  readonly #size: StagingSize;
  readonly #all: GPUBuffer[] = [];
  readonly #ready: { readonly buffer: GPUBuffer; readonly when: Promise<void>; done: boolean }[] = [];

  /** `buffers`: the usage of the buffers, and a label for errors. */
  constructor(device: GPUDevice, buffers: Omit<GPUBufferDescriptor, 'size'>, size: StagingSize) {
    this.#device = device;
    this.#buffers = buffers;
    this.#size = size;
  }

  /**
   * A free buffer. Where none is free, a new one as long as there may be more, else the next one to be free.
   * Making one takes a millisecond or more, so the thread sends answers before it goes on.
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
   * Gives a buffer back; it can be taken again once `when` has ended. A failure belongs to the transfer that
   * gave it: the next taker maps the buffer again, which fails where the device is lost.
   */
  give(buffer: GPUBuffer, when: Promise<unknown>): void {
    const ready = {
      buffer,
      done: false,
      when: Promise.allSettled([when]).then(() => void (ready.done = true)),
    };
    this.#ready.push(ready);
  }

  destroy(): void {
    for (const buffer of this.#all) buffer.destroy();
  }
}
