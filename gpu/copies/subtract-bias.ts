import { type KernelDescriptor, range, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Groups of four of a thread. */
const FOURS = 4;

/**
 * r_uv - μ - γ_v of the ratings in the groups of four [first, first + fours), into `centred`, at the same
 * places. One pass before a half-iteration: kernels that gather rows of θ would wait for each rating's column
 * and then for its bias.
 *
 */
export const subtractBiasKernel: KernelDescriptor<Record<string, never>> = {
  name: 'subtract-bias',
  bindings: [...reads('indices', 'values', 'fixed_bias'), ...writes('centred')],
  uniforms: [
    { name: 'first', type: 'u32' },
    { name: 'fours', type: 'u32' },
    { name: 'mean', type: 'f32' },
  ],
  needs: () => [],
  values: () => ({ THREADS, FOURS, each: range(FOURS) }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
};

/** Workgroups for so many groups of four. */
export function subtractBiasWorkgroups(fours: number): number {
  return Math.ceil(fours / (THREADS * FOURS));
}
