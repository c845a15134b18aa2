import { equationColumns } from '../../../tasks/equation-tasks.ts';
import { gradientColumns } from '../../../tasks/vector-tasks.ts';
import {
  type AlsGrid,
  exchangesVectors,
  hasGramOfParts,
  isInBlocks,
  otherSide,
  type Side,
  sides,
  stepsEverywhere,
  sumsOf,
  verticalParts,
} from '../grid.ts';
import { type AlsProblem, isHalfOnly } from '../problem.ts';
import { reduceWay, spreadSeconds } from './groups.ts';
import { ratesOf, SPILL_BYTES_A_SECOND } from '../../../planner/device-rates.ts';
import { blockBytes, factorBytes, factorStride } from '../../../planner/sizes.ts';

/**
 * Estimated seconds of an iteration, and of its causes. Staging (copying ratings and factors to devices for
 * each use) overlaps computation, so a half-iteration takes the longer of the two, and `exchange` in
 * addition.
 */
export interface IterationCost {
  readonly seconds: number;
  readonly computing: number;
  /** Copies of parts of ratings and factors between host or files and devices, for each use of a part. */
  readonly staging: number;
  /**
   * Seconds for sending solved parts to all devices, adding partial equations or vectors, and adding Gram
   * matrices; only the time that does not overlap computation.
   */
  readonly exchange: number;
}

/**
 * Fixed cost of adding up one part's partial equations (REDUCED), or of one exchange in a step of conjugate
 * gradients (STEPPED), relative to the fixed cost of one plain transfer of a part (`perPart` in DeviceRates).
 * Fitted to iterations by 2, 4 and 8 parts on two H200s (bench/results, `cards-vertical`).
 */
const REDUCED = 6;
const STEPPED = 4;

/**
 * Kernel time of implicit ALS on a GPU relative to explicit ALS. It is larger because ratings have weights
 * and a Gram matrix is added to each row's system. Measured at rank 128 on one H200.
 */
const IMPLICIT = 1.13;

/**
 * Fixed cost of a part's Gram matrix, relative to the fixed cost of one plain transfer of a part (`perPart`).
 * After the part is solved, the matrix is fetched, sent to the other devices and added there; the other
 * side's kernels wait for the sum. Fitted to the time of an iteration with three parts of users on two H200s.
 */
const GRAM = 2.3;

type Costed = Pick<
  AlsProblem,
  'profile' | 'params' | 'compute' | 'device' | 'rows' | 'solver' | 'choices' | 'places'
> & { readonly grid: AlsGrid };

/**
 * The numbers from which pipelineSeconds estimates a half-iteration whose parts are solved and exchanged at
 * the same time.
 */
export interface Pipelined {
  /** Seconds for all devices together to solve the side. */
  readonly kernels: number;
  /** Seconds of one device for copying the side's rows, sent and received. */
  readonly copies: number;
  /** Parts of each device, solved in sequence. */
  readonly parts: number;
  /** Fixed seconds for each transfer of a part, in addition to its bytes. */
  readonly perPart: number;
  readonly devices: number;
}

/**
 * Relative increase of the kernels' time for each further part: the last rows of a kernel do not occupy all
 * threads.
 */
const PART_TAIL = 0.035;

/**
 * Seconds in which a device computes: its share of the rows, and the fraction `common` of all rows, which
 * every device solves.
 */
function kernelSeconds({ kernels, parts, devices }: Pipelined, common: number): number {
  return kernels * (1 - common + devices * common + PART_TAIL * (parts - (common > 0 ? 0 : 1)));
}

/**
 * Estimated seconds of a half-iteration that solves and exchanges parts in a pipeline, and in which every
 * device also solves the fraction `common` of the rows for itself. A part can only be sent when it is solved,
 * so the copies of the first part wait for its kernels. The common rows can be solved during the copies of
 * the last part. The result is the largest of the bounds that follow.
 */
export function pipelineSeconds(pipelined: Pipelined, common = 0): number {
  const { kernels, copies, parts, perPart, devices } = pipelined;
  const own = 1 - common;
  const sending = copies * own + perPart * parts * devices;
  const first = (kernels * own) / parts + sending;
  return Math.max(
    kernelSeconds(pipelined, common),
    first,
    kernelSeconds({ ...pipelined, devices: 0 }, common) + sending / parts,
  );
}

/** The estimated time of an iteration with a grid. */
export function costOf(problem: Costed): IterationCost {
  const halves = sides.map((side) => costOfHalf(problem, side));
  const sum = (of: (half: IterationCost) => number) => halves.reduce((total, half) => total + of(half), 0);
  return {
    seconds: sum((half) => half.seconds),
    computing: sum((half) => half.computing),
    staging: sum((half) => half.staging),
    exchange: sum((half) => half.exchange),
  };
}

/** For each device, the estimated seconds to solve the whole side alone. */
export function secondsAlone(
  { profile: { ratings: nz }, params: { rank, implicitPrefs }, compute, rows, solver }: Costed,
  side: Side,
): number[] {
  return compute.map((device) => {
    const more = implicitPrefs && device.kind === 'gpu' ? IMPLICIT : 1;
    const rates = ratesOf(device, solver.cgBelow > 0 ? solver.cgSteps : 0);
    const stride = Math.ceil(rank / device.strideStep) * device.strideStep;
    const products = implicitPrefs && device.kind === 'cpu' && solver.cgBelow > 0 ? solver.cgSteps + 1 : 0;
    return (
      more *
      (nz * (rates.perRating + Math.min(rates.perFeature * stride, rates.perSquare * stride ** 2)) +
        rows[side] *
          (rates.perRow + rates.perRowSquare * stride ** 2 + (products * 2 * stride ** 2) / rates.solves))
    );
  });
}

/**
 * The input of pipelineSeconds for a side whose solved rows are sent to all devices; undefined if rows are
 * not exchanged. `kernels`: seconds for all devices together to solve the side.
 */
export function pipelinedOf(problem: Costed, side: Side, kernels: number): Pipelined | undefined {
  const {
    params: { rank },
    compute: { length: devices },
    device,
    rows,
    solver,
    grid,
    choices,
  } = problem;
  const { q, common, fixed, factors } = grid[side];
  if (devices === 1 || fixed !== 'whole' || factors !== 'device') return undefined;
  const { exchange, perPart } = ratesOf(device, solver.cgBelow > 0 ? solver.cgSteps : 0);
  // If kernels are not chosen yet, GPUs are assumed to read users in float16, which is the usual choice.
  const half = choices === undefined ? side === 'users' && device.ownMemory : isHalfOnly(problem, side);
  const bytes = factorBytes(rows[side], rank, device.strideStep) * (half ? 0.5 : 1);
  return {
    kernels,
    copies: bytes / exchange,
    perPart,
    parts: Math.max(1, Math.floor((common === undefined ? q : q - 1) / devices)),
    devices,
  };
}

/**
 * Estimated seconds for devices with their own memory to add the Gram matrices of a side's `q` parts
 * (implicit data). No other work overlaps this.
 */
export function gramSeconds(
  { params: { implicitPrefs }, compute: { length: devices }, device, solver, grid }: Costed,
  side: Side,
  q: number,
): number {
  return implicitPrefs && devices > 1 && device.ownMemory && hasGramOfParts(grid, side, devices)
    ? GRAM * ratesOf(device, solver.cgBelow > 0 ? solver.cgSteps : 0).perPart * q
    : 0;
}

/**
 * Number of vectors per row that a step of conjugate gradients reads or writes: the received product, and the
 * solution x, residual r, direction p and their sums.
 */
const STEP_PASSES = 8;

/**
 * Estimated seconds for solving a side by conjugate gradients that exchange vectors. The first residual and
 * each step need a pass over the ratings and their θ (or over partial equations), and passes over the rows'
 * vectors at the rows' owners. After each pass over the ratings, products are sent to the owners and added,
 * and the new directions are sent back. The exchanges of one part depend on each other, so they can only
 * overlap work on other parts. `kernels`: seconds for forming partial equations.
 */
function vectorSeconds(
  problem: Costed,
  side: Side,
  { used, kernels }: { readonly used: number; readonly kernels: number },
): { readonly computing: number; readonly exchange: number } {
  const {
    profile: { ratings: nz },
    params: { rank, biases, implicitPrefs },
    compute: { length: d },
    device,
    rows,
    solver: { cgSteps },
    grid,
  } = problem;
  const rates = ratesOf(device, cgSteps);
  const passes = cgSteps + 1;
  const vector = factorBytes(rows[side], rank, device.strideStep);
  const equations = factorBytes(rows[side], equationColumns(rank, biases), device.strideStep);
  // Forming the equations reads and writes them once for each part of the fixed side.
  const multiplying =
    sumsOf(grid, side) === 'partial-equations'
      ? kernels + ((2 * verticalParts(grid, side)) / used + passes) * (equations / rates.memory)
      : (passes * nz * (4 * factorStride(rank, device.strideStep) + 8)) / rates.gathers / used;
  const gram = implicitPrefs ? (passes * 2 * rows[side] * rank ** 2) / rates.solves / d : 0;
  const everywhere = stepsEverywhere(grid, side);
  const steps = (passes * STEP_PASSES * vector) / rates.memory / (everywhere ? 1 : d);
  const computing = multiplying + steps + gram * (everywhere ? d : 1);
  if (d === 1) return { computing, exchange: 0 };
  // Each device sends its partial sums to the owners of the rows, and the owners send the directions to all.
  // Where every device steps all rows, it sends its sums to all and needs no directions.
  const residuals = factorBytes(rows[side], gradientColumns(rank, biases), device.strideStep);
  const sums = reduceWay(problem, residuals).seconds + cgSteps * reduceWay(problem, vector).seconds;
  const exchanged = everywhere ? d * sums : sums + passes * spreadSeconds(problem, vector);
  const parts = Math.max(1, grid[side].q / d);
  const exchange = exchanged / parts + STEPPED * passes * grid[side].q * rates.perPart;
  return { computing, exchange };
}

function costOfHalf(problem: Costed, side: Side): IterationCost {
  const {
    profile: { ratings: nz },
    params,
    compute,
    device,
    rows,
    solver,
    grid,
  } = problem;
  const { rank, biases } = params;
  const rates = ratesOf(device, solver.cgBelow > 0 ? solver.cgSteps : 0);
  const d = compute.length;
  const { q, factors, ratings, common = 0, speeds } = grid[side];
  const fixed = grid[otherSide[side]];
  const p = verticalParts(grid, side);
  const [own, other] = [
    factorBytes(rows[side], rank, device.strideStep),
    factorBytes(rows[otherSide[side]], rank, device.strideStep),
  ];
  const used = Math.min(d, q * p);
  const kernels = Math.max(
    ...secondsAlone(problem, side).map((seconds, at) => seconds * (speeds?.[at] ?? 1 / used)),
  );
  const pipelined = pipelinedOf(problem, side, kernels);
  let computing = kernels * (1 - common + d * common);
  let [staged, spilled] = [0, 0];
  // Number of times that staged ratings are copied to the device in this half-iteration.
  let passes = 1;
  let waiting = 0;
  if (exchangesVectors(grid, side)) {
    const vectors = vectorSeconds(problem, side, { used, kernels });
    [computing, waiting] = [vectors.computing, vectors.exchange];
    if (sumsOf(grid, side) === 'vectors') passes = solver.cgSteps + 1;
  } else if (isInBlocks(grid, side)) {
    const equations = factorBytes(rows[side], equationColumns(rank, biases), device.strideStep);
    // Equations are read and written once for each part of the fixed side, and read once more to be solved.
    computing +=
      ((2 * p + 1) * equations) / rates.memory / used + (rows[side] * rank ** 3) / 3 / rates.solves / d;
    if (d > 1) waiting = reduceWay(problem, equations).seconds + REDUCED * q * rates.perPart;
    if (fixed.factors === 'host') staged += (q * other) / d;
  }
  // A part is uploaded and copied back.
  if (factors === 'host') staged += (2 * own) / d;
  if (ratings !== 'device') staged += (passes * blockBytes(rows[side], nz)) / d;
  if (ratings === 'spill') spilled += passes * blockBytes(rows[side], nz);
  const staging = device.ownMemory
    ? Math.max(staged / rates.link, spilled / SPILL_BYTES_A_SECOND)
    : Math.max(staged / d / rates.memory, spilled / SPILL_BYTES_A_SECOND);
  const unhidden =
    waiting +
    gramSeconds(problem, side, q) +
    (pipelined === undefined
      ? 0
      : Math.max(0, pipelineSeconds(pipelined, common) - kernels * (1 - common + d * common)));
  return { computing, staging, exchange: unhidden, seconds: Math.max(computing, staging) + unhidden };
}
