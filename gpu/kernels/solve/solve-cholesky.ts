import { type KernelDescriptor, range, reads, writes } from '../kernel.ts';
import { paddedRank, slotElements, tilesOf } from '../normal-equations/slots.ts';

export type SolveCholeskyParams = {
  readonly rank: number;
  /** The last feature is the row's bias. */
  readonly biases: boolean;
  /** The float16 mirror of the factors is written too. */
  readonly half: boolean;
  /** Place where A is factored: a copy in workgroup memory, or its first slot. */
  readonly where: 'workgroup' | 'global';
};

/** The variant with workgroup memory if that holds A, else the one in the slot. */
export function chooseSolveCholesky(rank: number, biases: boolean, half: boolean, { bytes = 16384 }: { readonly bytes?: number } = {}): SolveCholeskyParams {
  const within = { rank, biases, half, where: 'workgroup' } as const;
  return workgroup(within).bytes <= bytes ? within : { ...within, where: 'global' };
}

/**
 * x of (A + λ n_u I) x = b by Cholesky, one workgroup a row. `work` lists rows (gpu/update/work.ts): row, first slot, n_u, slots;
 * a row's slots follow each other, are added up in order and are changed. `factors` has a stride of whole tiles, padding 0;
 * `half` is its mirror. A row with n_u = 0 becomes 0. `status` becomes the lowest row whose A is not positive definite
 * or whose x is not finite; it starts as the largest u32.
 *
 * With biases the last feature of x goes to `bias` and 1 takes its place, also for rows with n_u = 0.
 */
export const solveCholeskyKernel: KernelDescriptor<SolveCholeskyParams> = {
  name: 'solve-cholesky',
  bindings: [...reads('work'), ...writes('slots', 'factors', 'half', 'bias', 'status')],
  uniforms: [
    { name: 'count', type: 'u32' },
    { name: 'lambda', type: 'f32' },
  ],
  needs: () => [],
  values(params) {
    const { rank, where } = params;
    const stride = paddedRank(rank);
    const { threads } = workgroup(params);
    const elements = range(16).map((at) => ({ at, name: `${Math.floor(at / 4)}.${'xyzw'[at % 4]}`, buffer: 16 * (at % 2), later: range(15 - at).map((i) => at + 1 + i), quads: range(Math.floor(at / 4) + 1) }));
    return {
      ...params,
      RANK: rank,
      STRIDE: stride,
      QUADS: stride / 4,
      TILES: tilesOf(rank),
      SLOT_QUADS: slotElements(rank) / 4,
      // Starts of the last row of tiles, and of b behind the tiles.
      LAST_TILES: ((tilesOf(rank) * (tilesOf(rank) - 1)) / 2) * 64,
      BIAS_START: (slotElements(rank) - stride) / 4,
      THREADS: threads,
      ...biasPlace(rank),
      barrier: where === 'workgroup' ? 'workgroupBarrier' : 'storageBarrier',
      // Rows of a panel, b among them, that a thread keeps.
      owned: range(Math.ceil((stride + 1) / threads)),
      elements,
      upwards: elements.toReversed(),
    };
  },
  workgroup,
};

function workgroup({ rank, where }: SolveCholeskyParams) {
  const stride = paddedRank(rank);
  return { threads: Math.min(256, Math.ceil((stride + 1) / 32) * 32), bytes: 128 + 4 * stride + (where === 'workgroup' ? 4 * slotElements(rank) : 0) };
}

/** Position of the bias among groups of four features, for write-row. */
export function biasPlace(rank: number): { readonly BIAS_QUAD: number; readonly BIAS_COMPONENT: number } {
  return { BIAS_QUAD: Math.floor((rank - 1) / 4), BIAS_COMPONENT: (rank - 1) % 4 };
}
