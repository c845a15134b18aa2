import { paddedRank } from '../../device/slots.ts';

/**
 * Layouts of conjugate gradients whose vectors devices exchange, in quads of four numbers: a row of gradients
 * (operators/tasks/vector-tasks.ts) is r, four quads of numbers and, with biases, s; the slot of a part of a
 * row has r, one quad with 0, t and Σ r_uv θ_vᵀx, and s.
 *
 */
export function gradientQuads(
  rank: number,
  biases: boolean,
): { readonly quads: number; readonly gradients: number; readonly slot: number } {
  const quads = paddedRank(rank) / 4;
  return { quads, gradients: quads * (biases ? 2 : 1) + 4, slot: quads * (biases ? 2 : 1) + 1 };
}
