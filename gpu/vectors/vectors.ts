/**
 * Layouts of the buffers of matrix-free conjugate gradients, in quads (groups of four float32 numbers). F is
 * the rank rounded up to a multiple of 16.
 *
 * - A row of *gradients* (operators/tasks/vector-tasks.ts): the residual r (F numbers); four quads of single
 *   numbers; with biases s = Σ θ_v (F numbers). The second of the four quads starts with the value of |r|² at
 *   which the row's steps end, and the row's objective.
 * - A *slot*: the term of A p of one part of a row's ratings (F numbers).
 * - A slot for the residual: the part's term of r; a quad with 0, t and Σ r_uv θ_vᵀx; with biases s.
 */
import { paddedRank } from '../device/slots.ts';

interface VectorQuads {
  readonly quads: number;
  readonly gradients: number;
  readonly slot: number;
}

export function vectorQuads(rank: number, biases: boolean): VectorQuads {
  const quads = paddedRank(rank) / 4;
  const vectors = quads * (biases ? 2 : 1);
  return { quads, gradients: vectors + 4, slot: vectors + 1 };
}

/**
 * Bytes of one row's direction and gradients, and of one slot; of implicit data also of the direction's
 * product with the Gram matrix.
 */
export function vectorBytes(rank: number, biases: boolean, implicit: boolean): number {
  const { quads, gradients, slot } = vectorQuads(rank, biases);
  return 16 * (quads * (implicit ? 2 : 1) + gradients + slot);
}
