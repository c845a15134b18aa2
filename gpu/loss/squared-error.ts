import { type KernelDescriptor, range, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 64;
const STEPS = 16;

/** Largest stride of rows whose numbers stay in a team's registers. */
const HELD_STRIDE = 256;

/** Ratings that one workgroup sums. */
export const ERROR_RATINGS = THREADS * STEPS;

export type SquaredErrorParams = {
  /** Elements of a row of factors. */
  readonly stride: number;
  /** The errors include both biases; otherwise these buffers are not read. */
  readonly biased: boolean;
  /** `column_factors` are a half mirror. */
  readonly half: boolean;
};

/**
 * Σ e² and Σ |e| over the ratings [first, last) of the rows [from_row, to_row), two float32 sums for each
 * ERROR_RATINGS ratings counted from `origin`. There is at least one rating.
 *
 */
export const squaredErrorKernel: KernelDescriptor<SquaredErrorParams> = {
  name: 'squared-error',
  bindings: [
    ...reads('row_pointers', 'indices', 'values', 'row_factors', 'column_factors', 'row_bias', 'column_bias'),
    ...writes('sums'),
  ],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'to_row', type: 'u32' },
    { name: 'first', type: 'u32' },
    { name: 'last', type: 'u32' },
    { name: 'origin', type: 'u32' },
    { name: 'base', type: 'f32' },
  ],
  needs: () => [],
  values: ({ stride, biased, half }) => ({
    THREADS,
    STEPS,
    QUADS: stride / 4,
    BIASED: biased,
    HALF: half,
    /** A row's share of a thread fits registers. */
    HELD: half && stride <= HELD_STRIDE,
    CHUNKS: stride / 8,
    /** The last of a row's shares is of some threads of a team alone. */
    RAGGED: stride % 32 !== 0,
    parts: range(Math.ceil(stride / (half ? 32 : 16))).map((part) => 4 * part),
  }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * 2 * 4 * (THREADS + 1) }),
};
