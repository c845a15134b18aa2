/**
 * Buffers with the vectors of conjugate gradients without A. Their layouts, in quads of four numbers:
 *
 * - A row of *gradients* (operators/tasks/vector-tasks.ts): r; four quads of numbers; with biases
 *   s = Σ θ_v. The second of the four quads starts with the |r|² at which the steps end and the row's
 *   objective.
 * - The *slot* of a part of a row: the part's term of A p, F numbers.
 * - The slot of a part for the residual: r; a quad with 0, t and Σ r_uv θ_vᵀx; with biases s.
 */
import { paddedRank } from '../device/slots.ts';

interface VectorQuads {
  /** Quads of a vector. */
  readonly quads: number;
  readonly gradients: number;
  readonly slot: number;
}

export function vectorQuads(rank: number, biases: boolean): VectorQuads {
  const quads = paddedRank(rank) / 4;
  const vectors = quads * (biases ? 2 : 1);
  return { quads, gradients: vectors + 4, slot: vectors + 1 };
}

/** Bytes of one row's direction and gradients, and of one slot. */
export function vectorBytes(rank: number, biases: boolean): number {
  const { quads, gradients, slot } = vectorQuads(rank, biases);
  return 16 * (quads + gradients + slot);
}
