import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Workgroups that copy a number of values. */
export function unpaddedRowsWorkgroups(count: number): number {
  return Math.ceil(count / THREADS);
}

/**
 * Copies a matrix without its padding. In the matrix, rows of `columns` values start `stride` values apart;
 * in the result there are no gaps. Writes `count` values of the result, from its value `first` on.
 */
export const unpaddedRowsKernel = kernelOf()({
  name: 'unpadded-rows',
  bindings: [...reads({ padded: 'array<u32>' }), ...writes({ rows: 'array<u32>' })],
  uniforms: {
    first: 'u32',
    count: 'u32',
    columns: 'u32',
    stride: 'u32',
  },
  values: () => ({ THREADS }),
});
