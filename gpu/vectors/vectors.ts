/**
 * Layouts of conjugate gradients without A whose vectors are in buffers, in quads of four numbers.
 *
 * A row of *gradients* (operators/tasks/vector-tasks.ts) is r, four quads of numbers and, with biases, s = Σ
 * θ_v; the second of those quads begins with the |r|² at which the steps end, and the row's objective. The
 * *slot* of a part of a row has what the part adds to A p, in F numbers; for the residual it has r, a quad
 * with 0, t and Σ r_uv θ_vᵀx, and s.
 */
import { paddedRank } from '../device/slots.ts';

interface VectorQuads {
  /** Of a vector. */
  readonly quads: number;
  readonly gradients: number;
  readonly slot: number;
}

export function vectorQuads(rank: number, biases: boolean): VectorQuads {
  const quads = paddedRank(rank) / 4;
  const vectors = quads * (biases ? 2 : 1);
  return { quads, gradients: vectors + 4, slot: vectors + 1 };
}

/** Bytes of a row's direction and gradients and one slot. */
export function vectorBytes(rank: number, biases: boolean): number {
  const { quads, gradients, slot } = vectorQuads(rank, biases);
  return 16 * (quads + gradients + slot);
}
