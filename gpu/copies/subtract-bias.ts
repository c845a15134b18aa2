import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Groups of four ratings that a thread handles. */
const FOURS = 4;

/**
 * r_uv - μ - γ_v of the ratings in the groups of four [first, first + fours), written to `centred` at the
 * same positions. This is a separate pass before a half-iteration because kernels that read rows of θ would
 * wait for each rating's column and then for its bias.
 */
export const subtractBiasKernel = kernelOf<Record<string, never>>()({
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
  needs: () => [],
  values: () => ({ THREADS, FOURS, each: range(FOURS) }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});

/** Workgroups for a number of groups of four. */
export function subtractBiasWorkgroups(fours: number): number {
  return Math.ceil(fours / (THREADS * FOURS));
}
