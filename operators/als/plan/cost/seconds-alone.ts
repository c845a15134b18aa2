import { type DeviceRates, ratesOf } from '../../../planner/device-rates.ts';
import { stepsOf } from '../../solver-choice.ts';
import { MAXIMUM_FORMED_RANK } from '../../../params/common.ts';
import { type AlsGrid, isInBlocks, type Side } from '../grid.ts';
import type { AlsProblem } from '../problem.ts';

/** The parts of a problem from which costs are estimated. */
export type Costed = Pick<
  AlsProblem,
  'profile' | 'params' | 'compute' | 'device' | 'rows' | 'solver' | 'choices' | 'places'
> & { readonly grid: AlsGrid };

/**
 * Kernel time of implicit ALS on a GPU relative to explicit ALS. It is larger because ratings have weights
 * and a Gram matrix is added to each row's system. Measured at rank 128 on one H200.
 */
const IMPLICIT = 1.13;

/** The largest rank at which kernels in 8 bits are the rule on tensor cores. */
const EIGHT_BIT_RANKS = 256;

/** The largest rank at which the rule on GPUs forms A of implicit data for CG. */
const LARGEST_IMPLICIT_FORMED = 128;

/**
 * Products of many rows' vectors with the Gram matrix relative to the rate of exact solves: 22 to 27 TFLOP/s
 * on an H100.
 */
const GRAM_SPEED = 3;

/**
 * Vectors of a row that a GPU reads or writes for a step of CG without A: the sum over the row's ratings, x,
 * the residual and the direction twice each, and the direction once more for the product with θ.
 */
const STEP_VECTORS = 9;

/** True if kernels that solve the side usually read the other side's factors in 8 bits on tensor cores. */
export function isReadInEightBits({ params, solver, grid }: Costed, side: Side): boolean {
  const { rank, implicitPrefs, precision } = params;
  return (
    solver.cgBelow > 0 &&
    rank <= EIGHT_BIT_RANKS &&
    !implicitPrefs &&
    !isInBlocks(grid, side) &&
    (precision === 'auto' || precision === 'int8')
  );
}

/** For each device, the estimated seconds to solve the whole side alone. */
export function secondsAlone(problem: Costed, side: Side): number[] {
  const {
    profile: { ratings: nz },
    params: { rank, implicitPrefs },
    compute,
    rows,
    solver,
  } = problem;
  const inEightBits = isReadInEightBits(problem, side);
  return compute.map((device) => {
    const more = implicitPrefs && device.kind === 'gpu' ? IMPLICIT : 1;
    const rates = ratesFor(problem, device);
    const { perRating, perSquare } = (inEightBits ? rates.eightBits : undefined) ?? rates;
    const stride = Math.ceil(rank / device.strideStep) * device.strideStep;
    if (device.kind === 'gpu' && formsNoMatrix(problem)) return freeSeconds(problem, side, rates, stride);
    const square = stride ** 2;
    const products =
      implicitPrefs && device.kind === 'cpu' && solver.cgBelow > 0 ? costedSteps(problem) + 1 : 0;
    return (
      more *
      (nz * (perRating + Math.min(rates.perFeature * stride, perSquare * square)) +
        rows[side] * (rates.perRow + rates.perRowSquare * square + (products * 2 * square) / rates.solves))
    );
  });
}

/** True if a GPU solves rows by CG without forming A, whose time freeSeconds estimates. */
function formsNoMatrix({ params: { rank, implicitPrefs }, solver }: Costed): boolean {
  return rank > (implicitPrefs && solver.cgBelow > 0 ? LARGEST_IMPLICIT_FORMED : MAXIMUM_FORMED_RANK);
}

/**
 * Estimated seconds of a GPU for a side whose A is too large to form. The first residual and each step read θ
 * of every rating once and some vectors of every row. With implicit data they also multiply the vectors by
 * the Gram matrix. On an H100, Netflix's shape took 0.5 to 0.9 of these times at ranks 512 to 4,096
 * (bench/results, `als-gpu-above-512`).
 */
function freeSeconds(problem: Costed, side: Side, rates: DeviceRates, stride: number): number {
  const {
    profile: { ratings },
    params: { implicitPrefs, precision },
    rows,
    choices,
  } = problem;
  const passes = costedSteps(problem) + 1;
  const bytes = (choices?.[side].precision ?? precision) === 'f32' ? 4 : 2;
  const gathering = (ratings * (bytes * stride + 8)) / rates.gathers;
  const stepping = (rows[side] * STEP_VECTORS * 4 * stride) / rates.memory;
  const gram = implicitPrefs ? (rows[side] * 2 * stride ** 2) / (GRAM_SPEED * rates.solves) : 0;
  return passes * (gathering + stepping + gram);
}

/** Steps of conjugate gradients of most iterations; 0 if rows are solved exactly. */
export function costedSteps({
  params,
  profile,
  solver,
}: Pick<Costed, 'params' | 'profile' | 'solver'>): number {
  return solver.cgBelow > 0 ? stepsOf(params, profile, Infinity) : 0;
}

/** The rates of a device for the solver of a problem. */
export function ratesFor(
  problem: Pick<Costed, 'params' | 'profile' | 'solver'>,
  device: AlsProblem['device'],
): DeviceRates {
  return ratesOf(device, costedSteps(problem));
}
