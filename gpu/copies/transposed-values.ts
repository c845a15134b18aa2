import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/**
 * Finds the values of a block of ratings in its transpose, which is already on the GPU. So of the two blocks
 * that a training needs (ratings by user and by item), the second is uploaded without values, which saves a
 * third of its uploads. `count`: ratings of the block; `rows`: its rows.
 */
export const transposedValuesKernel = kernelOf()({
  name: 'transposed-values',
  bindings: [
    ...reads({
      row_pointers: 'array<u32>',
      indices: 'array<u32>',
      other_pointers: 'array<u32>',
      other_indices: 'array<u32>',
      other_values: 'array<f32>',
    }),
    ...writes({ values: 'array<f32>' }),
  ],
  uniforms: {
    count: 'u32',
    rows: 'u32',
  },
  values: () => ({ THREADS }),
});

/** Workgroups for a number of ratings. */
export function transposedValuesWorkgroups(count: number): number {
  return Math.ceil(count / THREADS);
}
