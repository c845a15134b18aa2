import type { Binding, CompiledKernel } from './kernel.ts';

/** Most bind groups that are kept for a kernel: an iteration uses the same few again and again. */
const MOST_KEPT = 64;

/**
 * A cache of bind groups, by kernel and buffers. Creating one occupies the GPU's thread for 40 µs, as long
 * as a kernel on small data runs, and each iteration of ALS binds the same buffers (bench/results,
 * `als-gpu-kept-bindings`).
 */
export class BindGroups {
  readonly #device: GPUDevice;
  readonly #numbers = new WeakMap<GPUBuffer, number>();
  readonly #kept = new WeakMap<GPUBindGroupLayout, Map<string, GPUBindGroup>>();
  #buffers = 0;

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** Throws where the kernel names a buffer that is not bound. */
  of(
    { kernel, label, layout }: CompiledKernel,
    uniforms: GPUBufferBinding,
    bindings: Readonly<Record<string, Binding>>,
  ): GPUBindGroup {
    const resources = [uniforms];
    for (const { name } of kernel.bindings) {
      const binding = bindings[name];
      if (binding === undefined) throw new Error(`kernel ${label}: no buffer for ${name}`);
      resources.push('buffer' in binding ? binding : { buffer: binding });
    }
    const key = resources
      .map(({ buffer, offset = 0, size = '' }) => `${this.#numberOf(buffer)}+${offset}:${size}`)
      .join();
    let kept = this.#kept.get(layout);
    if (kept === undefined) this.#kept.set(layout, (kept = new Map()));
    let group = kept.get(key);
    if (group === undefined) {
      const entries = resources.map((resource, binding) => ({ binding, resource }));
      group = this.#device.createBindGroup({ label, layout, entries });
      // The first in a map is the oldest.
      if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value as string);
      kept.set(key, group);
    }
    return group;
  }

  #numberOf(buffer: GPUBuffer): number {
    let number = this.#numbers.get(buffer);
    if (number === undefined) this.#numbers.set(buffer, (number = this.#buffers++));
    return number;
  }
}
