import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Workgroups to dispatch for `fours` groups of four numbers. */
export function addMatrixWorkgroups(fours: number): number {
  return Math.ceil(fours / THREADS);
}

/**
 * Adds one matrix to another in place, sum += addend, for `fours` groups of four numbers from group number
 * `first` on.
 */
export const addMatrixKernel = kernelOf()({
  name: 'add-matrix',
  bindings: [...reads({ addend: 'array<vec4f>' }), ...writes({ sum: 'array<vec4f>' })],
  uniforms: {
    first: 'u32',
    fours: 'u32',
  },
  values: () => ({ THREADS }),
});
