import type { Kernels } from './generated/kernels-wasm.ts';

/**
 * The WebAssembly kernels of cpu/assembly, where equations and layouts are documented.
 *
 * Contract: all addresses are bytes in the shared memory. Addresses of matrices are multiples of 16. `size`
 * is the number of bytes of a factor row: 4 * stride, where stride is a multiple of 8 and padding columns are
 * 0. Indices are not checked against the number of rows. A kernel keeps no state, and its result depends only
 * on its arguments and the memory that they address.
 */
export type { Kernels };

/**
 * Instantiates the kernels over a shared memory of at most 65,536 pages (4 GiB). Each thread has its own
 * instance; instances share only the memory.
 */
export function loadKernels(memory: WebAssembly.Memory, compiled: WebAssembly.Module): Kernels {
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Kernels;
}
