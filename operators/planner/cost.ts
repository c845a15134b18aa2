import { equationColumns } from '../tasks/equation-tasks.ts';
import { type AlsGrid, isInBlocks, otherSide, type Side, sides, verticalParts } from '../als/plan/grid.ts';
import type { AlsProblem } from '../als/plan/problem.ts';
import { ratesOf, SPILL_BYTES_A_SECOND } from './device-rates.ts';
import { blockBytes, factorBytes } from './sizes.ts';

/** Seconds of an iteration by their causes. Copies that come while a device computes cost time only beyond the computation. */
export interface IterationCost {
  readonly seconds: number;
  readonly computing: number;
  /** Ratings and factors that come to devices and go back, part by part. */
  readonly staging: number;
  /** Parts that are gathered, and partial equations that are reduced. */
  readonly exchange: number;
}

/** The share of an exchange that does not hide behind the computation of other parts. */
const UNHIDDEN = 0.3;

type Costed = Pick<AlsProblem, 'profile' | 'params' | 'compute' | 'device' | 'rows' | 'solver'> & { readonly grid: AlsGrid };

/** The estimated time of an iteration with a grid. */
export function costOf(problem: Costed): IterationCost {
  const halves = sides.map((side) => costOfHalf(problem, side));
  const sum = (of: (half: IterationCost) => number) => halves.reduce((total, half) => total + of(half), 0);
  return { seconds: sum((half) => half.seconds), computing: sum((half) => half.computing), staging: sum((half) => half.staging), exchange: sum((half) => half.exchange) };
}

function costOfHalf({ profile: { ratings: nz }, params, compute, device, rows, solver, grid }: Costed, side: Side): IterationCost {
  const { rank, biases } = params;
  const rates = ratesOf(device, solver.cgBelow > 0 ? solver.cgSteps : 0);
  const d = compute.length;
  const { q, factors, ratings } = grid[side];
  const fixed = grid[otherSide[side]];
  const p = verticalParts(grid, side);
  const stride = Math.ceil(rank / device.strideStep) * device.strideStep;
  const [own, other] = [factorBytes(rows[side], rank, device.strideStep), factorBytes(rows[otherSide[side]], rank, device.strideStep)];
  const used = Math.min(d, q * p);
  let computing = (nz * (rates.perRating + rates.perSquare * stride ** 2) + rows[side] * rates.perRow) / used;
  let [staged, spilled, exchanged] = [0, 0, 0];
  if (isInBlocks(grid, side)) {
    const equations = factorBytes(rows[side], equationColumns(rank, biases), device.strideStep);
    // Equations are read and written with each part of the fixed side, and once more to be solved.
    computing += ((2 * p + 1) * equations) / rates.memory / used + (rows[side] * rank ** 3) / 3 / rates.solves / d;
    if (d > 1) exchanged += ((2 * (d - 1)) / d) * equations;
    if (fixed.factors === 'host') staged += (q * other) / d;
  }
  // A part comes as it was and goes back.
  if (factors === 'host') staged += (2 * own) / d;
  else if (grid[side].fixed === 'whole' && d > 1) exchanged += own / d + ((d - 1) / d) * own;
  if (ratings !== 'device') staged += blockBytes(rows[side], nz) / d;
  if (ratings === 'spill') spilled += blockBytes(rows[side], nz);
  const staging = device.ownMemory ? Math.max(staged / rates.link, spilled / SPILL_BYTES_A_SECOND) : Math.max(staged / d / rates.memory, spilled / SPILL_BYTES_A_SECOND);
  const exchange = exchanged / rates.link;
  return { computing, staging, exchange, seconds: Math.max(computing, staging) + UNHIDDEN * exchange };
}

/**
 * The time of an iteration in which each step of matrix-free CG exchanges vectors in place of A: f numbers a row and step, and a pass over the ratings a step
 * (cuMF, section 4.3, has A and b reduced).
 */
export function costOfVectors(problem: Costed): number {
  const { profile: { ratings: nz }, params: { rank }, solver: { cgSteps }, compute, device, rows } = problem;
  const rates = ratesOf(device, cgSteps);
  const d = compute.length;
  const gathered = nz * (4 * rank + 8) * (cgSteps + 1);
  const vectors = factorBytes(rows.users + rows.items, rank, device.strideStep) * (cgSteps + 1) * 2;
  return (2 * gathered) / rates.memory / d + (UNHIDDEN * (((d - 1) / d) * vectors)) / rates.link;
}
