import { type DeviceRates, ratesOf } from '../../../planner/device-rates.ts';
import { stepsOf } from '../../solver-choice.ts';
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

/** For each device, the estimated seconds to solve the whole side alone. */
export function secondsAlone(problem: Costed, side: Side): number[] {
  const {
    profile: { ratings: nz },
    params: { rank, implicitPrefs, precision },
    compute,
    rows,
    solver,
    grid,
  } = problem;
  const inEightBits =
    solver.cgBelow > 0 &&
    rank <= EIGHT_BIT_RANKS &&
    !implicitPrefs &&
    !isInBlocks(grid, side) &&
    (precision === 'auto' || precision === 'int8');
  return compute.map((device) => {
    const more = implicitPrefs && device.kind === 'gpu' ? IMPLICIT : 1;
    const rates = ratesFor(problem, device);
    const { perRating, perSquare } = (inEightBits ? rates.eightBits : undefined) ?? rates;
    const stride = Math.ceil(rank / device.strideStep) * device.strideStep;
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
