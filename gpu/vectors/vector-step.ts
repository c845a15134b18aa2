import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { paddedRank } from '../device/slots.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { RESIDUAL_TOLERANCE } from '../solve/solve-cg.ts';
import { stateQuads, vectorSlotQuads } from './vectors.ts';

export type VectorStepParams = {
  readonly rank: number;
  readonly biases: boolean;
  /** The float16 mirror of the factors is written with the last step. */
  readonly half: boolean;
  readonly phase: 'begin' | 'residual' | 'step';
};

const THREADS = 64;

/**
 * Steps of conjugate gradients on rows whose products with A lie in slots of vectors (vectors.ts); x are the
 * `factors`. `work` lists rows as solve-cholesky takes them; `half`, `bias` and `status` are its. The last
 * step (`last` 1) writes them.
 *
 */
export const vectorStepKernel = kernelOf<VectorStepParams>()({
  name: 'vector-step',
  bindings: [
    ...reads({ work: 'array<vec4u>', given: 'array<vec4f>', shifts: 'array<f32>' }),
    ...writes({
      state: 'array<vec4f>',
      factors: 'array<vec4f>',
      half: 'array<vec2u>',
      bias: 'array<f32>',
      status: 'atomic<u32>',
    }),
  ],
  uniforms: { count: 'u32', last: 'u32' },
  needs: () => ['quads'],
  values: (params) => {
    const { rank, biases } = params;
    const quads = paddedRank(rank) / 4;
    return {
      ...params,
      ...shiftValues(biases),
      STATE_QUADS: stateQuads(rank, biases),
      SLOT_QUADS: vectorSlotQuads(rank, biases),
      QUADS: quads,
      THREADS,
      owned: range(Math.ceil(quads / THREADS)),
      tolerance: RESIDUAL_TOLERANCE,
    };
  },
  workgroup: () => ({ threads: THREADS, bytes: 4 * THREADS }),
  samples: (['begin', 'residual', 'step'] as const).map((phase) => ({
    rank: 264,
    biases: true,
    half: true,
    phase,
  })),
});
