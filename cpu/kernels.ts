import type { Kernels } from './generated/kernels-wasm.ts';

/**
 * The WebAssembly kernels of cpu/assembly, which documents equations and layouts.
 *
 * Contract: all addresses are bytes in the shared memory, 16-byte aligned for matrices; `size` is the bytes
 * of one factor row, 4 * stride, stride a multiple of 8, padding columns 0. Indices are not checked against
 * the number of rows. A kernel keeps no state, and its result depends on its arguments alone.
 */
export type { Kernels };

/**
 * The kernels for a shared memory of at most 65,536 pages. Each thread has an instance; instances share only
 * the memory.
 */
export function loadKernels(memory: WebAssembly.Memory, compiled: WebAssembly.Module): Kernels {
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Kernels;
}
