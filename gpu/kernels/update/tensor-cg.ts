import { range } from '../kernel.ts';
import { paddedRank, tilesOf } from '../normal-equations/slots.ts';
import type { TensorPlan } from '../normal-equations/tensor-plan.ts';
import { RESIDUAL_TOLERANCE } from '../solve/solve-cg.ts';

/** Groups of 16 bytes from one column of a vector in workgroup memory to the next: one more than it has spreads the banks. */
function pitchOf(rank: number): number {
  return 2 * tilesOf(rank) + 1;
}

/** Tiles that pass through workgroup memory together, at most. */
function roomOf({ phases }: Pick<TensorPlan, 'phases'>): number {
  return Math.max(...phases.flatMap(({ stores }) => stores.flatMap(({ tiles }) => tiles.map(({ place }) => place + 1))));
}

/** Values of the parts that solve with A / n in float16 as operands of tensor cores: a subgroup has every SUBGROUPS-th tile row, and all have the vectors. */
export function tensorCgValues(rank: number, { staged, plan }: { readonly staged: number; readonly plan: Pick<TensorPlan, 'tiles' | 'subgroups' | 'phases' | 'ratingRow'> }): Readonly<Record<string, unknown>> {
  return {
    tolerance: RESIDUAL_TOLERANCE,
    ROOM: roomOf(plan),
    VECTOR_PITCH: pitchOf(rank),
    STAGED: Math.max(staged, vectorsOf(rank, plan)),
    elements: range(Math.ceil(paddedRank(rank) / 32)),
    own_rows: range(Math.ceil(plan.tiles / plan.subgroups)),
    // b and s come first: where the ratings lie in the padding, with the last tile row.
    half_phases: plan.ratingRow ? plan.phases : plan.phases.toReversed(),
  };
}

/** Groups of 16 bytes that these parts need of the staging memory: tiles in float32 and in float16, later a vector and its product. */
function vectorsOf(rank: number, plan: Pick<TensorPlan, 'phases'>): number {
  return Math.max(roomOf(plan) * (80 + 32), 8 * pitchOf(rank) + 40 * tilesOf(rank));
}

/** Bytes of workgroup memory that these parts need beyond the staging memory of the sums. */
export function tensorCgBytes(rank: number, biases: boolean, { staged, plan }: { readonly staged: number; readonly plan: Pick<TensorPlan, 'subgroups' | 'phases'> }): number {
  return 16 * Math.max(0, vectorsOf(rank, plan) - staged) + (biases ? 4 * paddedRank(rank) + 4 * plan.subgroups : 0);
}
