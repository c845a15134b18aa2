import type { TransferCounters } from './counters.ts';

/** Large enough for the full speed of the bus, small enough that filling one overlaps with copying another. */
export const STAGING_BYTES = 16 << 20;
/** In each direction. */
export const STAGING_BUFFERS = 4;

/** Any view of host memory, shared or not. */
export type HostBytes = ArrayBufferView<ArrayBufferLike>;

/**
 * Moves bytes between host memory and GPU buffers through a few mapped buffers that are reused: new ones would cost page
 * faults each time. Sizes and offsets are multiples of 4.
 */
export class Staging {
  readonly #device: GPUDevice;
  readonly #counters: TransferCounters;
  readonly #up: StagingPool;
  readonly #down: StagingPool;

  constructor(device: GPUDevice, counters: TransferCounters) {
    this.#device = device;
    this.#counters = counters;
    this.#up = new StagingPool(device, GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC, 'upload');
    this.#down = new StagingPool(device, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST, 'readback');
  }

  /** Copies `source` to `target` from byte `offset` on. Work submitted later sees the bytes, though the copy may still be running. */
  async upload(target: GPUBuffer, source: HostBytes, offset = 0): Promise<void> {
    for (let at = 0; at < source.byteLength; at += STAGING_BYTES) {
      const bytes = Math.min(STAGING_BYTES, source.byteLength - at);
      await this.uploadFilled(target, offset + at, bytes, (staged) => new Uint8Array(staged).set(new Uint8Array(source.buffer, source.byteOffset + at, bytes)));
    }
  }

  /** Uploads at most STAGING_BYTES that `fill` writes; the memory that it gets holds bytes of earlier uploads. */
  async uploadFilled(target: GPUBuffer, offset: number, bytes: number, fill: (staged: ArrayBuffer) => void): Promise<void> {
    const staging = await this.#up.take();
    // The mapped range may be longer than the copy: buffers need whole words.
    if (staging.mapState !== 'mapped') await staging.mapAsync(GPUMapMode.WRITE, 0, STAGING_BYTES);
    fill(staging.getMappedRange(0, STAGING_BYTES));
    staging.unmap();
    this.#copy(staging, 0, target, offset, bytes);
    this.#counters.up(bytes);
    this.#up.give(staging, staging.mapAsync(GPUMapMode.WRITE, 0, STAGING_BYTES));
  }

  /** Fills `target` with the bytes of `source` from `offset` on. Calls `submitted` when the copies are submitted, resolves when they have ended. */
  async download(source: GPUBuffer, target: HostBytes, offset = 0, submitted?: () => void): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let at = 0; at < target.byteLength; at += STAGING_BYTES) {
      const bytes = Math.min(STAGING_BYTES, target.byteLength - at);
      const staging = await this.#down.take();
      this.#copy(source, offset + at, staging, 0, bytes);
      this.#counters.down(bytes);
      const part = staging.mapAsync(GPUMapMode.READ, 0, bytes).then(() => {
        new Uint8Array(target.buffer, target.byteOffset + at, bytes).set(new Uint8Array(staging.getMappedRange(0, bytes)));
        staging.unmap();
      });
      this.#down.give(staging, part);
      parts.push(part);
    }
    submitted?.();
    await Promise.all(parts);
  }

  /** Bytes of the buffers, which lie in host memory. */
  get bytes(): number {
    return STAGING_BYTES * (this.#up.buffers + this.#down.buffers);
  }

  destroy(): void {
    this.#up.destroy();
    this.#down.destroy();
  }

  #copy(from: GPUBuffer, fromOffset: number, to: GPUBuffer, toOffset: number, bytes: number): void {
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, fromOffset, to, toOffset, bytes);
    this.#device.queue.submit([encoder.finish()]);
  }
}

class StagingPool {
  readonly #device: GPUDevice;
  readonly #usage: number;
  readonly #label: string;
  readonly #all: GPUBuffer[] = [];
  readonly #ready: { readonly buffer: GPUBuffer; readonly when: Promise<unknown> }[] = [];

  constructor(device: GPUDevice, usage: number, label: string) {
    this.#device = device;
    this.#usage = usage;
    this.#label = label;
  }

  get buffers(): number {
    return this.#all.length;
  }

  async take(): Promise<GPUBuffer> {
    const next = this.#all.length < STAGING_BUFFERS ? undefined : this.#ready.shift();
    if (next !== undefined) {
      await next.when;
      return next.buffer;
    }
    if (this.#all.length >= STAGING_BUFFERS) throw new Error(`staging pool ${this.#label}: all buffers are taken and none was given back`);
    const isWritten = (this.#usage & GPUBufferUsage.MAP_WRITE) !== 0;
    const make = () => this.#device.createBuffer({ label: this.#label, size: STAGING_BYTES, usage: this.#usage, mappedAtCreation: isWritten });
    // Those that are written are mapped, which takes time; the others are made together.
    const made = Array.from({ length: isWritten ? 1 : STAGING_BUFFERS }, make);
    this.#all.push(...made);
    for (const buffer of made.slice(1)) this.give(buffer, Promise.resolve());
    return made[0];
  }

  /** Gives a buffer back; it can be taken again once `when` has resolved. */
  give(buffer: GPUBuffer, when: Promise<unknown>): void {
    // The next taker sees the failure.
    when.catch(() => undefined);
    this.#ready.push({ buffer, when });
  }

  destroy(): void {
    for (const buffer of this.#all) buffer.destroy();
  }
}
