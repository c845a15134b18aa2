import { UsageError } from '../engine/errors.ts';

/** A device of a page: its processor, its GPU, or the faster one. */
export type PageDeviceName = 'auto' | 'cpu' | 'gpu';

export const pageDevices: readonly PageDeviceName[] = ['auto', 'cpu', 'gpu'];

/** The error for `device: 'gpu'` where WebGPU is missing. */
export function noWebGpu(): UsageError {
  return new UsageError('this browser gives the page no WebGPU adapter', {
    phase: 'open',
    advice: "Use device 'auto', which then computes on the processor",
  });
}

/** The error for `device: 'gpu'` of a model that was opened without the code of WebGPU. */
export function noWebGpuCode(): UsageError {
  return new UsageError('the model was opened without the code of WebGPU', {
    advice: 'Open it by openModel(url, { webGpu }), with webGpu from factorflow/browser',
  });
}

/** The products of a search: `users` (or items, for similar ones) times `items` times `rank`. */
export interface SearchWork {
  readonly users: number;
  readonly items: number;
  readonly rank: number;
}

/**
 * A workgroup of the kernel `top-n` computes 128 users, in the same time if it has fewer, and few workgroups
 * leave most of a GPU idle. So with fewer users than this the GPU gains little.
 */
const LEAST_USERS = 64;
/**
 * WebAssembly computes 0.2 to 1.6 billion products a second where its bounds leave out few items, so this is
 * 0.3 seconds or more: enough for the time in which the code of WebGPU is loaded and the kernel compiled.
 */
const LEAST_PRODUCTS = 5e8;

/** True if a search is so large that `device: 'auto'` uses a GPU for it. */
export function isWorthGpu({ users, items, rank }: SearchWork): boolean {
  return users >= LEAST_USERS && users * items * rank >= LEAST_PRODUCTS;
}
