import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Workgroups that copy a number of values. */
export function unpaddedRowsWorkgroups(count: number): number {
  return Math.ceil(count / THREADS);
}

/**
 * Copies rows of `columns` values, stored `stride` values apart, without gaps: `count` values of the result
 * from value `first` on.
 */
export const unpaddedRowsKernel = kernelOf<Record<string, never>>()({
  name: 'unpadded-rows',
  bindings: [...reads({ padded: 'array<u32>' }), ...writes({ rows: 'array<u32>' })],
  uniforms: {
    first: 'u32',
    count: 'u32',
    columns: 'u32',
    stride: 'u32',
  },
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});
