import type { Place } from '../../../engine/plan/place.ts';
import { exchangeCost, type Links } from '../../../engine/run/exchanges/cost.ts';
import { MAXIMUM_FORMED_RANK } from '../../params/common.ts';
import { SPILL_BYTES_A_SECOND, type DeviceRates, ratesOf } from '../../planner/device-rates.ts';
import { blockBytes, factorBytes, factorStride } from '../../planner/sizes.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { gradientColumns } from '../../tasks/vector-tasks.ts';
import { requestedGrids } from '../als-params.ts';
import { stepsOf } from '../solver-choice.ts';
import {
  exchangesVectors,
  hasGramOfParts,
  isInBlocks,
  otherSide,
  type Side,
  type SideGrid,
  sides,
  stepsEverywhere,
  sumsOf,
  verticalParts,
  isHalfOnly,
  isSentInEightBits,
  type AlsGrid,
  type AlsProblem,
} from './problem.ts';

type Grouped = Pick<AlsProblem, 'compute' | 'params' | 'solver' | 'places'>;

/**
 * Assumed rate of a link between devices of different groups (usually on different processor sockets),
 * relative to a link inside a group.
 */
const ACROSS = 0.5;

/**
 * The chosen way to add partial sums: in two phases, first inside groups of devices, if `groups` is given,
 * else in one.
 */
interface ReduceWay {
  readonly groups?: readonly (readonly Place[])[];
  readonly seconds: number;
  /** Seconds of a single phase. */
  readonly onePhase: number;
}

/**
 * Groups of devices with faster links among each other: from the parameter `partitionGroups`, else one per
 * processor socket. Undefined if all links are equal.
 */
function groupsOf({ compute, params, places }: Grouped): readonly (readonly Place[])[] | undefined {
  const { groups } = requestedGrids(params);
  if (groups !== undefined) {
    let first = 0;
    return groups.map((count) => places.slice(first, (first += count)));
  }
  const numbers = [...new Set(compute.map(({ group }) => group))];
  if (numbers.length < 2 || numbers.length === compute.length || numbers.includes(undefined))
    return undefined;
  return numbers.map((number) => compute.filter(({ group }) => group === number).map(({ place }) => place));
}

/** Links between the devices: equal inside groups, slower between groups. */
function linksOf(problem: Grouped): Links {
  const {
    compute: [device],
    places,
    solver,
  } = problem;
  const { exchange } = ratesOf(device, solver.cgSteps);
  const groups = groupsOf(problem);
  const near = (from: Place, to: Place) =>
    groups === undefined || groups.some((group) => group.includes(from) && group.includes(to));
  // `exchange` is the sum of a device's sending and receiving rates.
  return {
    places,
    duplex: false,
    bytesPerSecond: places.map((from) => places.map((to) => (near(from, to) ? exchange : ACROSS * exchange))),
  };
}

/**
 * The cheaper way to add partial sums of `bytes` from all devices: in one phase, or first inside groups and
 * then between them. Groups that a parameter requests are always used.
 */
export function reduceWay(problem: Grouped, bytes: number): ReduceWay {
  const { places, params } = problem;
  const links = linksOf(problem);
  const cost = (groups?: readonly (readonly Place[])[]) =>
    exchangeCost({ how: 'reduce-scatter', bytes, places, ...(groups ? { groups } : {}) }, links).seconds;
  const onePhase = cost();
  const groups = groupsOf(problem);
  if (groups === undefined) return { seconds: onePhase, onePhase };
  const seconds = cost(groups);
  return params.partitionGroups !== undefined || seconds < onePhase
    ? { groups, seconds, onePhase }
    : { seconds: onePhase, onePhase };
}

/**
 * Estimated seconds to send rows of `bytes` in total, of which each device has an equal share, to all
 * devices.
 */
function spreadSeconds(problem: Grouped, bytes: number): number {
  return exchangeCost({ how: 'all-gather', bytes, places: problem.places }, linksOf(problem)).seconds;
}

/** The parts of a problem from which costs are estimated. */
type Costed = Pick<
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
function isReadInEightBits({ params, solver, grid }: Costed, side: Side): boolean {
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
function costedSteps({ params, profile, solver }: Pick<Costed, 'params' | 'profile' | 'solver'>): number {
  return solver.cgBelow > 0 ? stepsOf(params, profile, Infinity) : 0;
}

/** The rates of a device for the solver of a problem. */
function ratesFor(
  problem: Pick<Costed, 'params' | 'profile' | 'solver'>,
  device: AlsProblem['device'],
): DeviceRates {
  return ratesOf(device, costedSteps(problem));
}

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
 * Fixed cost of adding up one part's normal equations, relative to the fixed cost of one plain transfer of a
 * part (`perPart` in DeviceRates). Fitted to iterations by 2 and 4 parts on two H200s (bench/results,
 * `cards-vertical`, `cards-partial-equations` and `cards-all-reduce`).
 */
const REDUCED = 16;

/**
 * Fixed cost of the exchanges of one part in a step of conjugate gradients, in the same unit and from the
 * same measurements: products are sent to the part's owner and directions from it (`owners`), or products are
 * sent to all devices (`everywhere`).
 */
const STEPPED = { owners: 5.5, everywhere: 4 };

/**
 * Fixed cost of a part's Gram matrix, relative to the fixed cost of one plain transfer of a part (`perPart`).
 * After the part is solved, the matrix is fetched, sent to the other devices and added there; the other
 * side's kernels wait for the sum. Fitted to the time of an iteration with three parts of users on two H200s.
 */
const GRAM = 0.7;

/**
 * The numbers from which pipelineSeconds estimates a half-iteration whose parts are solved and exchanged at
 * the same time.
 */
interface Pipelined {
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
 * The fraction of the possible overlap of kernels and copies that is lost, probably because a WebGPU device
 * has one queue, in which they take turns. Fitted to iterations on two H200s (bench/results,
 * `cards-all-reduce`).
 */
const IN_TURN = 0.7;

/**
 * Estimated seconds of a half-iteration that solves and exchanges parts in a pipeline, and in which every
 * device also solves the fraction `common` of the rows for itself. A part can only be sent when it is solved,
 * so the copies of the first part wait for its kernels. The common rows can be solved during the copies of
 * the last part. With full overlap the result would be the largest of the bounds that follow; without any it
 * would be the sum of kernels and copies.
 */
export function pipelineSeconds(pipelined: Pipelined, common = 0): number {
  const { kernels, copies, parts, perPart, devices } = pipelined;
  const own = 1 - common;
  const sending = copies * own + perPart * parts * devices;
  const computing = kernelSeconds(pipelined, common);
  const overlapped = Math.max(
    computing,
    (kernels * own) / parts + sending,
    kernelSeconds({ ...pipelined, devices: 0 }, common) + sending / parts,
  );
  return overlapped + IN_TURN * (computing + sending - overlapped);
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
    grid,
    choices,
  } = problem;
  const { q, common, fixed, factors } = grid[side];
  if (devices === 1 || fixed !== 'whole' || factors !== 'device') return undefined;
  const { exchange, perPart } = ratesFor(problem, device);
  // If kernels are not chosen yet, GPUs are assumed to read users in float16 or in 8 bits, as they usually
  // do.
  const isUnknown = choices === undefined && side === 'users' && device.ownMemory;
  const half = isUnknown || isHalfOnly(problem, side);
  const inEightBits = isUnknown ? isReadInEightBits(problem, 'items') : isSentInEightBits(problem, side);
  const bytes = factorBytes(rows[side], rank, device.strideStep) * (inEightBits ? 0.25 : half ? 0.5 : 1);
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
export function gramSeconds(problem: Costed, side: Side, q: number): number {
  const { params, compute, device, grid } = problem;
  const devices = compute.length;
  return params.implicitPrefs && devices > 1 && device.ownMemory && hasGramOfParts(grid, side, devices)
    ? GRAM * ratesFor(problem, device).perPart * q
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
    grid,
  } = problem;
  const rates = ratesFor(problem, device);
  const cgSteps = costedSteps(problem);
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
  // If every device steps all rows, it sends its sums to all and needs no directions.
  const residuals = factorBytes(rows[side], gradientColumns(rank, biases), device.strideStep);
  const sums = reduceWay(problem, residuals).seconds + cgSteps * reduceWay(problem, vector).seconds;
  const exchanged = everywhere ? d * sums : sums + passes * spreadSeconds(problem, vector);
  const parts = Math.max(1, grid[side].q / d);
  const fixed = STEPPED[everywhere ? 'everywhere' : 'owners'] * passes * grid[side].q * rates.perPart;
  const exchange = exchanged / parts + fixed;
  return { computing, exchange };
}

function costOfHalf(problem: Costed, side: Side): IterationCost {
  const {
    profile: { ratings: nz },
    params,
    compute,
    device,
    rows,
    grid,
  } = problem;
  const { rank, biases } = params;
  const rates = ratesFor(problem, device);
  const d = compute.length;
  const { q, factors, ratings, common = 0, speeds } = grid[side];
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
  // Number of times that staged ratings, and staged parts of the fixed side, are copied to the device in this
  // half-iteration.
  let [passes, fixedPasses] = [1, 0];
  let waiting = 0;
  if (exchangesVectors(grid, side)) {
    const vectors = vectorSeconds(problem, side, { used, kernels });
    [computing, waiting] = [vectors.computing, vectors.exchange];
    if (sumsOf(grid, side) === 'vectors') passes = costedSteps(problem) + 1;
    fixedPasses = sumsOf(grid, side) === 'vectors' ? q * passes : q;
  } else if (isInBlocks(grid, side)) {
    const equations = factorBytes(rows[side], equationColumns(rank, biases), device.strideStep);
    // Equations are read and written once for each part of the fixed side, and read once more to be solved.
    computing +=
      ((2 * p + 1) * equations) / rates.memory / used + (rows[side] * rank ** 3) / 3 / rates.solves / d;
    if (d > 1) waiting = reduceWay(problem, equations).seconds + REDUCED * q * rates.perPart;
    fixedPasses = q;
  }
  const copied: readonly (readonly [SideGrid['factors'] | SideGrid['ratings'], bytes: number])[] = [
    [grid[otherSide[side]].factors, fixedPasses * other],
    // A part is uploaded and copied back.
    [factors, 2 * own],
    [ratings, passes * blockBytes(rows[side], nz)],
  ];
  const bytesFrom = (...homes: string[]) =>
    copied.reduce((sum, [home, bytes]) => sum + (homes.includes(home) ? bytes : 0), 0);
  const [staged, spilled] = [bytesFrom('host', 'spill') / d, bytesFrom('spill')];
  const copying = device.ownMemory ? staged / rates.link : staged / d / rates.memory;
  const staging = Math.max(copying, spilled / SPILL_BYTES_A_SECOND);
  const unhidden =
    waiting +
    gramSeconds(problem, side, q) +
    (pipelined === undefined
      ? 0
      : Math.max(0, pipelineSeconds(pipelined, common) - kernels * (1 - common + d * common)));
  return { computing, staging, exchange: unhidden, seconds: Math.max(computing, staging) + unhidden };
}
