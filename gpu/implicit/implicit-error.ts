import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 64;
const STEPS = 64;

/** Ratings that one workgroup sums. */
export const IMPLICIT_ERROR_RATINGS = (THREADS / 4) * STEPS;

export type ImplicitErrorParams = {
  /** Float32 elements of a row of factors, with padding. */
  readonly stride: number;
};

/**
 * Sums the terms of the implicit loss over the ratings [first, last), all ratings of the rows [from_row,
 * to_row). A rating r has the term w (p - s)² + base p (1 - 2 s), where w = alpha |r|, p is 1 if r > 0 and
 * else 0, and s = xᵀθ is the prediction. Each workgroup writes the float32 sum of IMPLICIT_ERROR_RATINGS
 * ratings. There must be at least one rating.
 */
export const implicitErrorKernel = kernelOf<ImplicitErrorParams>()({
  name: 'implicit-error',
  bindings: [
    ...reads({
      row_pointers: 'array<i32>',
      indices: 'array<u32>',
      values: 'array<f32>',
      row_factors: 'array<vec4f>',
      column_factors: 'array<vec4f>',
    }),
    ...writes({ sums: 'array<f32>' }),
  ],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    first: 'u32',
    last: 'u32',
    alpha: 'f32',
    base: 'f32',
  },
  values: ({ stride }) => ({
    THREADS,
    STEPS,
    QUADS: stride / 4,
  }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * 2 * THREADS }),
  samples: [{ stride: 48 }],
});
