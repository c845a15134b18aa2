import { CapacityError } from '../../engine/errors.ts';
import type { MatrixShape } from '../../engine/partition.ts';
import type { Gpu } from '../webgpu/gpu.ts';

/**
 * Buffers that were given back, kept for whoever wants the same number of bytes next: each half-iteration makes a version of
 * a side's factors and frees one. What is taken is zeroed, unless it may hold anything: when it is given back, while nobody
 * waits for it.
 */
export class BufferPool {
  readonly #gpu: Gpu;
  readonly #free = new Map<number, GPUBuffer[]>();
  /** Of these, those that were not zeroed. */
  readonly #written = new Set<GPUBuffer>();

  constructor(gpu: Gpu) {
    this.#gpu = gpu;
  }

  /** Throws CapacityError when the memory does not suffice even without what is kept here. */
  async take(bytes: number, label: string, contents: MatrixShape['contents'] = 'zeros'): Promise<GPUBuffer> {
    const kept = this.#free.get(sizeOf(bytes)) ?? [];
    const fitting = kept.findLastIndex((buffer) => this.#written.has(buffer) === (contents === 'any'));
    // Without one that fits, -1: the last of the others.
    const [buffer] = kept.splice(fitting, 1);
    if (buffer === undefined) return this.#create(bytes, label);
    if (this.#written.delete(buffer) && contents === 'zeros') this.#clear(buffer);
    buffer.label = label;
    return buffer;
  }

  /** `contents`: what its next owner is likely to want. */
  give(buffer: GPUBuffer, contents: MatrixShape['contents'] = 'zeros'): void {
    if (contents === 'zeros') this.#clear(buffer);
    else this.#written.add(buffer);
    const kept = this.#free.get(buffer.size);
    if (kept === undefined) this.#free.set(buffer.size, [buffer]);
    else kept.push(buffer);
  }

  /** Frees what nobody uses. */
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
    try {
      return await this.#gpu.buffer(bytes, label);
    } catch (error) {
      if (!(error instanceof CapacityError) || this.#free.size === 0) throw error;
      this.trim();
      return this.#gpu.buffer(bytes, label);
    }
  }
}

/** As `Gpu.buffer` rounds it. */
function sizeOf(bytes: number): number {
  return Math.max(16, Math.ceil(bytes / 16) * 16);
}
