import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/**
 * Computes the values of a transposed block R(ij)ᵀ from the values of R(ij); it has `count` ratings in
 * `rows` rows. So the ratings of the second side are uploaded without values, which saves a third of a
 * training's uploads.
 */
export const transposedValuesKernel = kernelOf<Record<string, never>>()({
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
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});

/** Workgroups for a number of ratings. */
export function transposedValuesWorkgroups(count: number): number {
  return Math.ceil(count / THREADS);
}
