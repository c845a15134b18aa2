import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { laneValues } from './row-lanes.ts';
import { type Tile, tileBytes, tileValues } from './tiles.ts';

export type UpdateMatrixFreeParams = {
  readonly rank: number;
  /** Precision of `fixed`: the float32 matrix or its float16 mirror. Sums are float32. */
  readonly precision: 'f32' | 'f16';
  /** Ratings of the longest row in the list. */
  readonly longest: number;
  /** Threads that serve one row. */
  readonly lanes: number;
  /** Rows that share a workgroup (clMF, section 3.2.1: thread batching). */
  readonly rows: number;
  /** Solves the row's bias as well. */
  readonly biases: boolean;
};

function tileOf({ rank, precision, longest, lanes, rows }: UpdateMatrixFreeParams): Tile {
  return { rank, precision, ratings: longest, lanes, rows };
}

function bytesOf(params: UpdateMatrixFreeParams): number {
  return tileBytes(tileOf(params)) + 4 * params.rows * params.longest;
}

/** Workgroups that solve `count` rows. */
export function updateMatrixFreeWorkgroups(params: UpdateMatrixFreeParams, count: number): number {
  return Math.ceil(count / params.rows);
}

/**
 * Chooses a variant for `bytes` of workgroup memory. 32 threads share a row. A row may have 64 ratings, or
 * fewer if their rows of θ do not fit; a workgroup has up to four rows.
 */
export function chooseUpdateMatrixFree(
  rank: number,
  precision: 'f32' | 'f16',
  biases: boolean,
  { bytes = 16384 }: { readonly bytes?: number } = {},
): UpdateMatrixFreeParams {
  const one = { rank, precision, biases, lanes: 32, rows: 1, longest: 0 };
  const bytesTo = (longest: number) => bytesOf({ ...one, longest });
  const perRating = bytesTo(1) - bytesTo(0);
  const longest = Math.max(1, Math.min(64, Math.floor((bytes - bytesTo(0)) / perRating)));
  const rows = Math.max(1, Math.min(4, Math.floor(bytes / bytesTo(longest))));
  return { ...one, longest, rows };
}

/**
 * Solves rows of at most `longest` ratings by `steps` steps (f_s) of conjugate gradients that do not form A
 * (cuMF_ALS, Algorithm 1). It ends early as cpu/reference/conjugate-gradient.ts does. An entry of `work`:
 * row, first rating, number of ratings, 0. For `fixed` and the ratings see normal-equations, for `status` and
 * the outputs see solve-cholesky.
 *
 * A kernel may have eight storage buffers, which leaves none for the initial x and for the float16 mirror. So
 * `factors` must have the initial x of every row (a copy of the previous version), and to-half makes the
 * mirror afterwards.
 */
export const updateMatrixFreeKernel = kernelOf<UpdateMatrixFreeParams>()({
  name: 'update-matrix-free',
  bindings: [
    ...reads({
      work: 'array<vec4u>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<{{ stored }}>',
      shifts: 'array<f32>',
    }),
    ...writes({ factors: 'array<vec4f>', bias: 'array<f32>', status: 'array<atomic<u32>>' }),
  ],
  uniforms: { count: 'u32', steps: 'u32' },
  needs: () => [],
  values: (params) => ({
    ...laneValues(params.rank, params),
    ...tileValues(tileOf(params)),
    ...shiftValues(params.biases),
    biases: params.biases,
  }),
  workgroup: (params) => ({ threads: params.lanes * params.rows, bytes: bytesOf(params) }),
  samples: [chooseUpdateMatrixFree(10, 'f16', true), chooseUpdateMatrixFree(512, 'f32', false)],
});
