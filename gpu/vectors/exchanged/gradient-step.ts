import { type KernelDescriptor, range, reads, writes } from '../../webgpu/kernel.ts';
import { regularizationUniforms } from '../../solve/regularization.ts';
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
export const gradientStepKernel: KernelDescriptor<GradientStepParams> = {
  name: 'gradient-step',
  bindings: [
    ...reads('given', 'gram', 'shifts'),
    ...writes('gradients', 'factors', 'direction', 'bias', 'status'),
  ],
  uniforms: [{ name: 'count', type: 'u32' }, { name: 'first', type: 'u32' }, ...regularizationUniforms],
  needs: () => [],
  values(params) {
    const { rank, biases } = params;
    const { quads, gradients } = gradientQuads(rank, biases);
    return {
      ...params,
      THREADS,
      QUADS: quads,
      ROW_QUADS: gradients,
      owned: range(Math.ceil(quads / THREADS)),
      tolerance: RESIDUAL_TOLERANCE,
      bias_tolerance: BIAS_TOLERANCE,
    };
  },
  workgroup: ({ rank }) => ({ threads: THREADS, bytes: 4 * THREADS + 16 * gradientQuads(rank, false).quads }),
};
