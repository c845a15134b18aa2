import { range } from '../webgpu/kernel.ts';
import { MOST_FORMED, paddedRank } from '../device/slots.ts';
import { BIAS_TOLERANCE, RESIDUAL_TOLERANCE } from '../solve/solve-cg.ts';

/**
 * Most threads of a row at ranks up to MOST_FORMED, and most groups of four features of a thread above, whose
 * registers hold them of five vectors.
 */
const MOST_LANES = 32;
const MOST_OWNED = 4;
const THREADS = 64;
/** A workgroup has more than one row only if their vectors take at most this number of bytes. */
const VECTOR_BYTES = 8192;

/**
 * For kernels of matrix-free conjugate gradients: the number of threads that share a row, and the number of
 * rows in a workgroup.
 */
export function rowLanes(rank: number): { readonly lanes: number; readonly rows: number } {
  const quads = paddedRank(rank) / 4;
  const most = rank > MOST_FORMED ? quads / MOST_OWNED : Math.min(MOST_LANES, quads);
  const lanes = 2 ** Math.ceil(Math.log2(most));
  return { lanes, rows: Math.max(1, Math.min(THREADS / lanes, Math.floor(VECTOR_BYTES / (16 * quads)))) };
}

/**
 * Template values of the shaders in parts/cg/, in which `lanes` threads keep the vectors of a row in
 * registers.
 */
export function laneValues(rank: number, { lanes, rows }: { readonly lanes: number; readonly rows: number }) {
  const quads = paddedRank(rank) / 4;
  return {
    QUADS: quads,
    LANES: lanes,
    SHARES: Math.min(lanes, quads),
    ROWS: rows,
    THREADS: lanes * rows,
    // Groups of four features that a thread keeps.
    owned: range(Math.ceil(quads / lanes)),
    tolerances: { residual: RESIDUAL_TOLERANCE, bias: BIAS_TOLERANCE },
  };
}
