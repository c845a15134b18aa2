import { solveCholesky } from './cholesky.ts';
import type { NormalEquations } from './normal-equations.ts';

/**
 * Float64 version of cpu/assembly/solve/nonnegative.ts: min ½ xᵀA x - bᵀx over x >= 0, by the active-set
 * method of Lawson and Hanson (1974, chapter 23), one feature at a time. Returns undefined if A is not
 * positive definite.
 */
export function solveNonnegative({ matrix, bias }: NormalEquations): Float64Array | undefined {
  const rank = bias.length;
  const passive = Array.from(bias, () => false);
  const tolerance = 1e-13 * Math.hypot(...bias);
  let x = new Float64Array(rank);
  for (let step = 0; step < 10 * rank + 10; step++) {
    let z = solveAmong(matrix, bias, passive);
    while (z?.some((value) => value < 0)) {
      // Moves x towards z as far as it stays feasible.
      const share = z.reduce(
        (least, value, i) => (value < 0 ? Math.min(least, x[i] / (x[i] - value)) : least),
        1,
      );
      const target = z;
      const next = x.map((value, i) => value + share * (target[i] - value));
      for (let i = 0; i < rank; i++)
        if (target[i] < 0 && x[i] / (x[i] - target[i]) <= share) [passive[i], next[i]] = [false, 0];
      x = next;
      z = solveAmong(matrix, bias, passive);
    }
    if (z === undefined) return undefined;
    x = z;
    const descent = bias.map(
      (value, i) => value - x.reduce((sum, element, j) => sum + matrix[i * rank + j] * element, 0),
    );
    let entering = -1;
    for (let i = 0; i < rank; i++)
      if (!passive[i] && descent[i] > tolerance && !(descent[i] <= descent[entering])) entering = i;
    if (entering < 0) return x;
    passive[entering] = true;
  }
  return undefined;
}

/** The solution among the passive features; the others are 0. */
function solveAmong(
  matrix: Float64Array,
  bias: Float64Array,
  passive: readonly boolean[],
): Float64Array<ArrayBuffer> | undefined {
  const rank = bias.length;
  const members = passive.flatMap((isPassive, i) => (isPassive ? [i] : []));
  const part = Float64Array.from(members.flatMap((i) => members.map((j) => matrix[i * rank + j])));
  const solution = solveCholesky(
    part,
    Float64Array.from(members, (i) => bias[i]),
  );
  const x = new Float64Array(rank);
  if (solution) members.forEach((i, k) => (x[i] = solution[k]));
  return solution && x;
}
