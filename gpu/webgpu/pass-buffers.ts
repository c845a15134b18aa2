import { EndStamp } from './time-stamps.ts';

/** Buffers that passes reuse: creating them takes longer than a small kernel. */
export class PassBuffers {
  readonly #device: GPUDevice;
  #uniforms: GPUBuffer | undefined;
  readonly #results: GPUBuffer[] = [];
  #endStamp: EndStamp | undefined;

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /**
   * Writes the uniforms of the next pass and returns their buffer. All passes share one buffer: the queue
   * executes writes and passes in order, so the earlier passes have read it before this write.
   */
  uniforms(bytes: Uint8Array<ArrayBuffer>): GPUBuffer {
    if (this.#uniforms === undefined || this.#uniforms.size < bytes.byteLength) {
      this.#uniforms?.destroy();
      this.#uniforms = this.#device.createBuffer({
        label: 'uniforms',
        size: Math.max(4096, bytes.byteLength),
        usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
      });
    }
    this.#device.queue.writeBuffer(this.#uniforms, 0, bytes);
    return this.#uniforms;
  }

  /** A buffer to map for reading; the caller unmaps and returns it. */
  takeResult(bytes: number): GPUBuffer {
    const at = this.#results.findIndex(({ size }) => size >= bytes);
    if (at >= 0) return this.#results.splice(at, 1)[0];
    return this.#device.createBuffer({
      label: 'result',
      size: Math.max(4096, bytes),
      usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
  }

  giveResult(buffer: GPUBuffer): void {
    this.#results.push(buffer);
  }

  /** For a device that has time stamps. */
  endStamp(): EndStamp {
    return (this.#endStamp ??= new EndStamp(this.#device));
  }

  destroy(): void {
    this.#endStamp?.destroy();
    this.#uniforms?.destroy();
    for (const buffer of this.#results) buffer.destroy();
  }
}
