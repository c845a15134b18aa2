import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';

const THREADS = 256;

/** Workgroups for a number of groups of four values. */
export function addMatrixWorkgroups(fours: number): number {
  return Math.ceil(fours / THREADS);
}

/** sum += addend, for `fours` groups of four numbers from group `first` on. */
export const addMatrixKernel = kernelOf<Record<string, never>>()({
  name: 'add-matrix',
  bindings: [...reads({ addend: 'array<vec4f>' }), ...writes({ sum: 'array<vec4f>' })],
  uniforms: {
    first: 'u32',
    fours: 'u32',
  },
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});
