import { matrixElements, paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';
import { shiftValues, type SolvedForm, solvedRows } from './row-shifts.ts';

/**
 * Solves (A + λ n_u I) x = b of rows by a Cholesky factorization in the row's first slot. A workgroup has one
 * row. A and b are read from slots, scratch memory in which another kernel has summed them. For ranks whose A
 * does not fit the registers of a workgroup; for others see solve-cholesky-registers.
 *
 * | buffer | content |
 * |---|---|
 * | `work` | list of the rows (gpu/update/deal-rows.ts): row, first slot, n_u, number of slots |
 * | `slots` | A and b (device/slots.ts); a row's slots are adjacent, summed in order and overwritten |
 * | `shifts` | the numbers that are added to the diagonals of A, such as λ n_u |
 * | `factors` | output x, each row padded with 0 to whole tiles; a row with n_u = 0 becomes 0 |
 * | `half` | output: the float16 copy of `factors` |
 * | `bias` | output with biases: the row's bias, which is eliminated before A is factorized |
 * | `status` | output: the lowest row that cannot be solved, or the largest u32; then the rows' objectives |
 *
 * A row cannot be solved if its A is not positive definite or its x is not finite. A shift that is smaller
 * than the rounding error of A is raised to that error, so that A stays positive definite, as on the CPU
 * (cpu/assembly/solve/cholesky.ts).
 */
export const solveCholeskyKernel = kernelOf<SolvedForm>()({
  name: 'solve-cholesky',
  reads: { work: 'array<vec4u>', shifts: 'array<f32>' },
  writes: { slots: 'array<vec4f>', ...solvedRows },
  uniforms: { count: 'u32' },
  values(params) {
    const { rank, biases } = params;
    const stride = paddedRank(rank);
    const { threads } = workgroup(params);
    const elements = range(16).map((at) => ({
      at,
      name: `${Math.floor(at / 4)}.${'xyzw'[at % 4]}`,
      buffer: 16 * (at % 2),
      later: range(15 - at).map((i) => at + 1 + i),
      quads: range(Math.floor(at / 4) + 1),
    }));
    return {
      ...params,
      ...shiftValues(biases),
      RANK: rank,
      STRIDE: stride,
      QUADS: stride / 4,
      TILES: tilesOf(rank),
      SLOT_QUADS: slotElements(rank, biases) / 4,
      // Offsets in a slot, in groups of four numbers: of the last tile row, and of b, which is stored after
      // all tiles.
      LAST_TILES: ((tilesOf(rank) * (tilesOf(rank) - 1)) / 2) * 64,
      BIAS_START: matrixElements(rank) / 4,
      THREADS: threads,
      // For each row of a panel (16 columns of A, with b as one more row) that a thread keeps: its number 0,
      // 1, ...
      owned: range(Math.ceil((stride + 1) / threads)),
      elements,
      upwards: elements.toReversed(),
    };
  },
  workgroup,
  samples: [
    { rank: 200, biases: true, half: true },
    { rank: 512, biases: false, half: false },
  ],
});

function workgroup({ rank, biases }: SolvedForm) {
  const stride = paddedRank(rank);
  return {
    threads: Math.min(256, Math.ceil((stride + 1) / 32) * 32),
    bytes: 128 + 4 * stride + 16 + (biases ? 4 * stride + 16 : 0),
  };
}

type SolveCholeskyRegistersParams = SolvedForm & {
  /** Number of rows that share a workgroup. */
  readonly rows: number;
};

/** Side of the square block of A that a thread has in registers. */
const BLOCK = 8;

/** Largest rank whose A fits the registers of 256 threads, the workgroup that every GPU has. */
export const CHOLESKY_REGISTER_RANKS = 176;

/**
 * Chooses the number of rows in a workgroup that leaves the fewest threads of subgroups of 32 idle. A
 * workgroup with several rows has at most 128 threads, or 64 if a row has less than a subgroup.
 */
export function chooseSolveCholeskyRegisters(
  rank: number,
  biases: boolean,
  half: boolean,
): SolveCholeskyRegistersParams {
  const lanes = blocksOf(rank);
  const threads = lanes < 32 ? 64 : 128;
  const idle = (rows: number) => 1 - (rows * lanes) / (32 * Math.ceil((rows * lanes) / 32));
  const rows = range(Math.max(1, Math.floor(threads / lanes)))
    .map((i) => i + 1)
    .sort((left, right) => idle(left) - idle(right) || left - right)[0];
  return { rank, biases, half, rows };
}

export function solveCholeskyRegistersWorkgroups(
  { rows }: SolveCholeskyRegistersParams,
  count: number,
): number {
  return Math.ceil(count / rows);
}

function sideOf(rank: number): number {
  return Math.ceil(rank / BLOCK);
}

function blocksOf(rank: number): number {
  return (sideOf(rank) * (sideOf(rank) + 1)) / 2;
}

/**
 * Solves (A + λ n_u I) x = b of rows by a Cholesky factorization, with A in registers: a thread has one
 * block of 8 x 8 elements. Larger ranks are solved by solve-cholesky, whose table describes the buffers;
 * this kernel only reads `slots`.
 */
export const solveCholeskyRegistersKernel = kernelOf<SolveCholeskyRegistersParams>()({
  name: 'solve-cholesky-registers',
  reads: { work: 'array<vec4u>', shifts: 'array<f32>', slots: 'array<vec4f>' },
  writes: solvedRows,
  uniforms: { count: 'u32' },
  values(params) {
    const { rank, biases, rows } = params;
    const side = sideOf(rank);
    const columns = range(BLOCK).map((at) => ({
      at,
      // Element `at` of a column: "1.z" is element 6.
      name: `${Math.floor(at / 4)}.${'xyzw'[at % 4]}`,
    }));
    const elements = columns.map((column) => ({
      ...column,
      before: columns.slice(0, column.at),
      later: columns.slice(column.at + 1).map((row) => ({
        ...row,
        between: range(row.at - column.at).map((i) => column.at + 1 + i),
      })),
    }));
    return {
      ...params,
      ...shiftValues(biases),
      RANK: rank,
      SIDE: side,
      // s and t, in groups of four numbers.
      ONES: 2 * side + 1,
      BLOCKS: blocksOf(rank),
      LANES: blocksOf(rank),
      ROWS: rows,
      THREADS: rows * blocksOf(rank),
      QUADS: paddedRank(rank) / 4,
      SLOT_QUADS: slotElements(rank, biases) / 4,
      BIAS_START: matrixElements(rank) / 4,
      columns: elements,
      upwards: elements.toReversed(),
      // Rows of the last blocks that are beyond the rank.
      OUTSIDE: side * BLOCK - rank,
      outside: columns.slice(BLOCK - (side * BLOCK - rank)),
    };
  },
  bytes({ rank, rows, biases }) {
    const side = sideOf(rank);
    return rows * (16 * (16 * side + 16 + 2 * side + (biases ? 2 * side + 1 : 0)) + 4 * side + 4);
  },
  samples: [
    chooseSolveCholeskyRegisters(64, true, true),
    chooseSolveCholeskyRegisters(CHOLESKY_REGISTER_RANKS, false, false),
    chooseSolveCholeskyRegisters(10, true, false),
  ],
});
