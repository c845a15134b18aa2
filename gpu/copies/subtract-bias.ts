import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Groups of four ratings that a thread handles. */
const FOURS = 4;

/**
 * Subtracts the mean rating μ and the column's bias γ_v from each rating r_uv, and writes the results to
 * `centred` at the same positions. It handles groups of four ratings, from group `first` on, `fours` groups.
 *
 * This is a separate pass before a half-iteration. In a kernel that reads rows of θ, each rating would first
 * wait for its column index and then for the column's bias.
 */
export const subtractBiasKernel = kernelOf()({
  name: 'subtract-bias',
  bindings: [
    ...reads({ indices: 'array<vec4u>', values: 'array<vec4f>', fixed_bias: 'array<f32>' }),
    ...writes({ centred: 'array<vec4f>' }),
  ],
  uniforms: {
    first: 'u32',
    fours: 'u32',
    mean: 'f32',
  },
  values: () => ({ THREADS, FOURS, each: range(FOURS) }),
});

/** Workgroups for a number of groups of four. */
export function subtractBiasWorkgroups(fours: number): number {
  return Math.ceil(fours / (THREADS * FOURS));
}
