import { kernelOf, range, reads, writes } from '../../webgpu/kernel.ts';
import { shiftValues } from '../../solve/row-shifts.ts';
import { BIAS_TOLERANCE, RESIDUAL_TOLERANCE } from '../../solve/solve-cg.ts';
import { gradientQuads } from './gradients.ts';

export type GradientStepParams = {
  readonly rank: number;
  readonly biases: boolean;
  /** With a Gram matrix and shifts. */
  readonly implicit: boolean;
  readonly phase: 'begin' | 'step' | 'end';
};

const THREADS = 64;

/**
 * A phase of conjugate gradients on the gradients (gradients.ts) of rows in a row. Without implicit data
 * other buffers serve as `gram` and `shifts`.
 */
export const gradientStepKernel = kernelOf<GradientStepParams>()({
  name: 'gradient-step',
  bindings: [
    ...reads({
      /** x of the last version, or products. */
      given: 'array<vec4f>',
      gram: 'array<vec4f>',
      shifts: 'array<f32>',
    }),
    ...writes({
      gradients: 'array<vec4f>',
      factors: 'array<vec4f>',
      direction: 'array<vec4f>',
      bias: 'array<f32>',
      status: 'atomic<u32>',
    }),
  ],
  uniforms: {
    count: 'u32',
    /** The row of the first workgroup. */
    first: 'u32',
  },
  needs: () => [],
  values(params) {
    const { rank, biases } = params;
    const { quads, gradients } = gradientQuads(rank, biases);
    return {
      ...params,
      ...shiftValues(biases),
      THREADS,
      QUADS: quads,
      ROW_QUADS: gradients,
      owned: range(Math.ceil(quads / THREADS)),
      tolerance: RESIDUAL_TOLERANCE,
      bias_tolerance: BIAS_TOLERANCE,
    };
  },
  workgroup: ({ rank }) => ({ threads: THREADS, bytes: 4 * THREADS + 16 * gradientQuads(rank, false).quads }),
  samples: (['begin', 'step', 'end'] as const).flatMap((phase) => [
    { rank: 264, biases: true, implicit: false, phase },
    { rank: 40, biases: false, implicit: true, phase },
  ]),
});
