import { paddedRank } from '../device/slots.ts';

/**
 * Layouts of conjugate gradients that work with vectors alone and never form A, for ranks whose A is too
 * large.
 *
 * The *state* of a row is p, r, with biases s = Σ θ_v, each float32[F], and four numbers: |r|², the square at
 * which CG ends, and with biases Σ (r_v - θ_vᵀx). A *slot of vectors* has what a part of a row adds to A p:
 * float32[F], four numbers of which the first is Σ θ_vᵀp, and with biases room for Σ θ_v.
 *
 */
export function stateQuads(rank: number, biases: boolean): number {
  return (paddedRank(rank) / 4) * (biases ? 3 : 2) + 1;
}

export function vectorSlotQuads(rank: number, biases: boolean): number {
  return (paddedRank(rank) / 4) * (biases ? 2 : 1) + 1;
}

/** Bytes of a row's state and one slot. */
export function vectorBytes(rank: number, biases: boolean): number {
  return 16 * (stateQuads(rank, biases) + vectorSlotQuads(rank, biases));
}
