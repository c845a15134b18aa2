import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';

const THREADS = 256;
/** Ratings of a workgroup. */
const RATINGS = 64 * THREADS;

/** Counts the ratings of each column. `counts` must be 0 before. */
export const sgdColumnCountKernel = kernelOf()({
  name: 'sgd-column-count',
  bindings: [...reads({ indices: 'array<u32>' }), ...writes({ counts: 'array<atomic<u32>>' })],
  uniforms: { ratings: 'u32' },
  values: () => ({ THREADS, RATINGS }),
});

export function sgdColumnCountWorkgroups(ratings: number): number {
  return Math.ceil(ratings / RATINGS);
}
