import { CancelledError, DeviceLostError, UsageError } from '../../engine/errors.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import { HOST } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevices } from '../../engine/run/devices.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { type GivenPlan, plannedAutos } from '../planner/given-plan.ts';
import type { RatingsProfile } from '../planner/sizes.ts';
import { hostForm, longestRow, oneBlock, type Ratings, type RatingSides } from '../ratings/ratings.ts';
import { announceKernels, TaskRun, valuesOfStage } from '../tasks/run-tasks.ts';
import { contracts, type KernelChoice, type KernelTuning, type UpdateProblem } from '../tasks/tasks.ts';
import { type SizedAlsParams, sizedParams, type AlsParams } from './als-params.ts';
import { implicitWeights } from './implicit/weights.ts';
import { chooseSolver, mostSteps } from './solver-choice.ts';

/** The chosen kernels, by the side whose rows they solve. */
export interface AlsChoices {
  readonly users: KernelChoice;
  readonly items: KernelChoice;
}

/** The results of timing kernels, for each side whose rows are solved; undefined if nothing was measured. */
export interface SideTunings {
  readonly users?: KernelTuning;
  readonly items?: KernelTuning;
}

/** Sizes with which kernels are chosen before the real sizes are known. */
export const NO_SIZES = { users: 1, items: 1, ratings: 1 } as const;

/** The largest rating that is assumed if it is not known: five stars. */
const STARS = 5;

/**
 * Asks the first device which of its kernels it will use in each half-iteration. Returns undefined if the
 * device has only one. Throws UsageError if a requested kernel cannot run.
 */
export async function chooseKernels(
  profile: RatingsProfile,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<AlsChoices | undefined> {
  const [{ info }] = computeDevices(ctx.executor);
  if (!info.choosesKernels) return undefined;
  const problems = updateProblems(profile, params);
  const run = new TaskRun(ctx, 'choose-kernels', info.place);
  for (const params of [problems.users, problems.items])
    run.task({ kernel: 'choose-update', inputs: {}, outputs: {}, params });
  const [users, items] = await run.values('choose-update');
  return { users, items };
}

/**
 * The kernels that a plan names, with the device's description of them. Throws UsageError for an unavailable
 * kernel.
 */
export async function plannedKernels(
  { choices }: GivenPlan,
  known: RatingsProfile,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<AlsChoices | undefined> {
  const side = async (name: 'users' | 'items') => {
    const { variant, reason } = (choices[name] ?? {}) as Partial<AlsChoices['users']>;
    if (typeof variant !== 'string')
      throw new UsageError(`the plan does not fit: it names no kernel for ${name}`, {
        phase: 'plan',
        advice: 'Make the plan anew',
      });
    const found = await chooseKernels(known, { ...params, kernel: params.kernel ?? variant }, ctx);
    return found && { ...found[name], ...(typeof reason === 'string' ? { reason } : {}) };
  };
  const [users, items] = [await side('users'), await side('items')];
  return users && items && { users, items };
}

/**
 * The parameters to use before the ratings are read. Values `auto` of α and λ, which depend on the ratings,
 * are taken from the given plan for implicit data.
 */
export function asPlanned({ ...asked }: AlsParams, given: GivenPlan): SizedAlsParams {
  const { alpha = asked.alpha, regParam = asked.regParam } = plannedAutos(given, asked);
  return sizedParams(asked.implicitPrefs ? { ...asked, alpha, regParam } : asked, NO_SIZES);
}

/**
 * Chooses kernels before the sizes of the ratings are known, so that they can be compiled early. The task is
 * not counted in the run's measures.
 */
export function guessKernels(
  profile: RatingsProfile,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<AlsChoices | undefined> {
  return chooseKernels(profile, params, { ...ctx, metrics: new RunMetrics() });
}

/** Compiles the chosen kernels on every device, before a half-iteration needs them. */
export async function compileKernels(
  choices: AlsChoices,
  profile: RatingsProfile,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<void> {
  const tasks = Object.entries(updateProblems(profile, params)).map(([side, problem]) => {
    const { rank, solver, cgSteps, biases, implicit, prior } = problem;
    const shape = { rank, solver, cgSteps, biases, ...(implicit && { implicit }), ...(prior && { prior }) };
    return { ...shape, variants: [choices[side as keyof AlsChoices].variant] };
  });
  await Promise.all(
    computeDevices(ctx.executor).flatMap(({ info }) =>
      tasks.map((task) => announceKernels('compile-update', task, info.place, ctx)),
    ),
  );
}

/**
 * Times the kernels of a device that has several, on the given ratings (one block per side), so that
 * chooseKernels takes the fastest. The blocks stay on the device for training. `where-it-pays`: measures only
 * if the time is worth it; an error becomes a note, and a fixed rule chooses.
 */
export async function tuneKernels(
  sides: RatingSides,
  profile: RatingsProfile,
  params: AlsParams,
  how: 'where-it-pays' | 'thorough',
  ctx: ExecutionContext,
): Promise<SideTunings> {
  const [{ info }] = computeDevices(ctx.executor);
  if (!info.choosesKernels) return {};
  const problems = updateProblems(profile, params);
  const tunings: { users?: KernelTuning; items?: KernelTuning } = {};
  for (const [side, block] of [
    ['users', oneBlock(sides.byUser)],
    ['items', oneBlock(sides.byItem)],
  ] as const) {
    const start = performance.now();
    try {
      const steps = new StepList(contracts);
      steps.move('tune-kernels', block.ref, HOST, info.place);
      steps.task('tune-kernels', info.place, {
        kernel: 'tune-update',
        inputs: { block: block.ref },
        outputs: {},
        params: { ...problems[side], how },
      });
      const results = await runSteps(steps.steps, ctx, { given: [[block.ref, hostForm(block)]] });
      const [{ tuning }] = valuesOfStage(results, 'tune-kernels', 'tune-update');
      if (tuning === null) continue;
      tunings[side] = tuning;
      const seconds = ((performance.now() - start) / 1000).toFixed(1);
      ctx.events({
        type: 'note',
        text: `${tuning.times.length} kernels for ${side} timed in ${seconds} s: ${tuning.variant} is taken${tuning.note === undefined ? '' : `; ${tuning.note}`}`,
      });
    } catch (error) {
      if (how === 'thorough' || error instanceof CancelledError || error instanceof DeviceLostError)
        throw error;
      ctx.events({
        type: 'note',
        text: `kernels for ${side} could not be timed, the rule decides: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`,
      });
    }
  }
  return tunings;
}

/** Descriptions of both half-iterations, from which a device chooses its kernels. */
export function updateProblems(
  profile: RatingsProfile,
  given: AlsParams,
): { readonly users: UpdateProblem; readonly items: UpdateProblem } {
  const params = sizedParams(given, profile);
  const { users, items, longestUser, longestItem, attributes } = profile;
  const drawn = (side: 'users' | 'items') => attributes?.[side] && ({ prior: true } as const);
  return {
    users: { ...updateProblem(profile, params, users, items, longestUser), ...drawn('users') },
    items: { ...updateProblem(profile, params, items, users, longestItem), ...drawn('items') },
  };
}

/** The properties of sorted ratings on which the choice of kernels depends. */
export function profileOfSorted({ byUser, byItem }: RatingSides, largestRating: number): RatingsProfile {
  const longest = (ratings: Ratings) => Math.max(...ratings.parts.map(longestRow));
  return {
    users: byUser.rows,
    items: byItem.rows,
    ratings: byUser.ratings,
    longestUser: longest(byUser),
    longestItem: longest(byItem),
    largestRating,
  };
}

/**
 * Describes a half-iteration that solves `rows` rows from `columns` rows of the fixed side. `longest`: number
 * of ratings of the longest row.
 */
function updateProblem(
  { ratings, largestRating: largest = STARS }: RatingsProfile,
  params: SizedAlsParams,
  rows: number,
  columns: number,
  longest = Math.min(ratings, columns),
): UpdateProblem {
  const { rank, precision, kernel, biases } = params;
  const { cgBelow, exact = 'cholesky' } = chooseSolver(params, 'gpu');
  const { implicitPrefs } = params;
  const largestRating = implicitPrefs ? largestOfRoots(params, largest) : largest;
  return {
    rank,
    solver: cgBelow > 0 ? 'cg' : exact,
    cgSteps: mostSteps(params),
    precision,
    biases,
    ...(implicitPrefs ? { implicit: true } : {}),
    rows,
    columns,
    ratings,
    iterations: params.maxIter,
    longest,
    largestRating,
    ...(kernel === undefined ? {} : { kernel }),
  };
}

/**
 * The largest number that kernels store in float16 for implicit data: √w or t / √w, with the weight w and the
 * target t of a rating. Unbounded for α = 0.
 */
function largestOfRoots(params: SizedAlsParams, largest: number): number {
  const { alpha, base } = implicitWeights(params);
  const root = Math.sqrt(alpha * largest);
  return root === 0 ? Number.MAX_VALUE : Math.max(1, root, base / root + root);
}
