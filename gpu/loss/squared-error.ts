import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 64;
const STEPS = 16;

/** Largest stride at which the factors of a row fit the registers of a team. */
const HELD_STRIDE = 256;

/** Ratings that one workgroup sums. */
export const ERROR_RATINGS = THREADS * STEPS;

export type SquaredErrorParams = {
  /** Elements of a row of factors. */
  readonly stride: number;
  /** True: both biases are subtracted from the ratings. False: the buffers of biases are not read. */
  readonly biased: boolean;
  /** `column_factors` are a half mirror. */
  readonly half: boolean;
};

/**
 * Sums e² and |e| over the ratings [first, last) of the rows [from_row, to_row): two float32 for each
 * ERROR_RATINGS ratings, counted from `origin`. There must be at least one rating.
 */
export const squaredErrorKernel = kernelOf<SquaredErrorParams>()({
  name: 'squared-error',
  bindings: [
    ...reads({
      row_pointers: 'array<i32>',
      indices: 'array<vec4u>',
      values: 'array<f32>',
      row_factors: 'array<vec4f>',
      column_factors: 'array<{{ column_quads }}>',
      row_bias: 'array<f32>',
      column_bias: 'array<f32>',
    }),
    ...writes({ sums: 'array<vec2f>' }),
  ],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    first: 'u32',
    last: 'u32',

    /** `origin`: `first` rounded down to a multiple of 4. With biases, also the mean. */
    origin: 'u32',
    base: 'f32',
  },
  needs: () => [],
  values: ({ stride, biased, half }) => ({
    THREADS,
    STEPS,
    QUADS: stride / 4,
    BIASED: biased,
    HALF: half,
    column_quads: half ? 'vec4u' : 'vec4f',
    /** A row's share of a thread fits its registers. */
    HELD: half && stride <= HELD_STRIDE,
    CHUNKS: stride / 8,
    /** True if the last chunk of a row is so short that some threads of a team have no part of it. */
    RAGGED: stride % 32 !== 0,
    parts: range(Math.ceil(stride / (half ? 32 : 16))).map((part) => 4 * part),
  }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * 2 * 4 * (THREADS + 1) }),
  samples: [
    { stride: 16, biased: true, half: false },
    { stride: 112, biased: false, half: true },
    { stride: 512, biased: true, half: true },
  ],
});
