import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/**
 * The values of a block R(ij)ᵀ from those of R(ij), the block whose rows are its columns: `count` ratings in
 * `rows` rows. So the ratings of the second side go to the GPU without their values, a third of the bytes
 * that a training sends.
 *
 */
export const transposedValuesKernel: KernelDescriptor<Record<string, never>> = {
  name: 'transposed-values',
  bindings: [
    ...reads('row_pointers', 'indices', 'other_pointers', 'other_indices', 'other_values'),
    ...writes('values'),
  ],
  uniforms: [
    { name: 'count', type: 'u32' },
    { name: 'rows', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
};

/** Workgroups for so many ratings. */
export function transposedValuesWorkgroups(count: number): number {
  return Math.ceil(count / THREADS);
}
