import { CapacityError } from '../../engine/errors.ts';
import type { MatrixShape } from '../../engine/partition.ts';
import type { Gpu } from '../webgpu/gpu.ts';

/** The parts of an opened GPU that the pool uses. */
type PoolGpu = Pick<Gpu, 'device' | 'info' | 'buffer'> & Partial<Pick<Gpu, 'hasRoomFor'>>;

/**
 * A free buffer is used for a request if it is large enough, and larger by at most 1/32 of the requested
 * size. A buffer that is smaller by at most 1/32 may be destroyed (see #nearest).
 */
const NEAR = 32;

/**
 * Freed GPU buffers, kept for later requests of about the same size: each half-iteration allocates new
 * factors and frees old ones. A buffer is zeroed when it is freed, while no task waits for it, unless its
 * next owner will probably overwrite all of it.
 */
export class BufferPool {
  readonly #gpu: PoolGpu;
  readonly #free = new Map<number, GPUBuffer[]>();
  /** The free buffers that were not zeroed. */
  readonly #written = new Set<GPUBuffer>();

  constructor(gpu: PoolGpu) {
    this.#gpu = gpu;
  }

  /**
   * Takes a free buffer or creates one. Throws CapacityError when memory does not suffice even after all free
   * buffers are destroyed.
   */
  async take(bytes: number, label: string, contents: MatrixShape['contents'] = 'zeros'): Promise<GPUBuffer> {
    const size = this.#sizeOf(bytes);
    const kept = this.#nearest(size);
    const fitting = kept.findLastIndex((buffer) => this.#written.has(buffer) === (contents === 'any'));
    // If no buffer has the wanted contents, the index is -1, and `splice` takes the last one.
    const [buffer] = kept.splice(fitting, 1);
    if (buffer === undefined) return this.#create(size, label);
    if (this.#written.delete(buffer) && contents === 'zeros') this.#clear(buffer);
    buffer.label = label;
    return buffer;
  }

  /**
   * The free buffers of the smallest near size that is at least `size`. If there are none, one slightly
   * smaller buffer is destroyed: otherwise partitions that differ in a few rows would each leave a buffer in
   * the pool.
   */
  #nearest(size: number): GPUBuffer[] {
    const near = [...this.#free]
      .filter(([own, kept]) => kept.length > 0 && Math.abs(own - size) <= size / NEAR)
      .sort(([left], [right]) => left - right);
    const fitting = near.find(([own]) => own >= size);
    if (fitting !== undefined) return fitting[1];
    const smaller = near.at(-1)?.[1].pop();
    if (smaller !== undefined) {
      this.#written.delete(smaller);
      smaller.destroy();
    }
    return [];
  }

  /** Keeps a buffer. `contents` is what its next owner probably needs. */
  give(buffer: GPUBuffer, contents: MatrixShape['contents'] = 'zeros'): void {
    if (contents === 'zeros') this.#clear(buffer);
    else this.#written.add(buffer);
    const kept = this.#free.get(buffer.size);
    if (kept === undefined) this.#free.set(buffer.size, [buffer]);
    else kept.push(buffer);
  }

  /** Destroys the free buffers. */
  trim(): void {
    for (const buffers of this.#free.values()) for (const buffer of buffers) buffer.destroy();
    this.#free.clear();
    this.#written.clear();
  }

  #clear(buffer: GPUBuffer): void {
    const encoder = this.#gpu.device.createCommandEncoder({ label: `clear ${buffer.label}` });
    encoder.clearBuffer(buffer);
    this.#gpu.device.queue.submit([encoder.finish()]);
  }

  async #create(bytes: number, label: string): Promise<GPUBuffer> {
    if (this.#gpu.hasRoomFor?.(bytes) === false) this.trim();
    try {
      return await this.#gpu.buffer(bytes, label);
    } catch (error) {
      if (!(error instanceof CapacityError) || this.#free.size === 0) throw error;
      this.trim();
      return this.#gpu.buffer(bytes, label);
    }
  }

  /**
   * Rounds a size up to one of 64 sizes between two powers of two, unless that exceeds the device's limits.
   * So partitions of nearly the same size can use the same buffers.
   */
  #sizeOf(bytes: number): number {
    const { bufferBytes, bindingBytes } = this.#gpu.info.limits;
    const step = Math.max(16, 2 ** Math.floor(Math.log2(Math.max(1, bytes)) - 6));
    const size = Math.max(16, Math.ceil(bytes / step) * step);
    return size <= Math.min(bufferBytes, bindingBytes) ? size : Math.ceil(bytes / 16) * 16;
  }
}
