import { formatCount } from '../../../engine/format.ts';
import type { KernelChoice, KernelTuning, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { MOST_FORMED } from '../../device/slots.ts';
import type { TimeVariantsTask, VariantTime } from '../../handler.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import { chooseUpdate, servesPrecision, type TunedVariant } from './choose.ts';
import type { SumKernel, UpdateVariant } from './variant.ts';
import { everyVariant, FULL_REGISTERS, neighboursOf, updateVariants } from './variants.ts';

/** Runs the task time-variants on the GPU, which times variants on a sample of the ratings. */
export type Measure = (params: TimeVariantsTask['params']) => Promise<TimeVariantsTask['values']>;

/** Stores the fastest variants, for later runs. The implementation with a file is in tuner-cache.ts. */
export interface TunedKernels {
  find(key: string): Promise<TunedVariant | undefined>;
  /** Stores a choice. Returns undefined, or the reason if it could not be stored. */
  keep(key: string, tuned: TunedVariant): Promise<string | undefined>;
}

/**
 * `seconds`: of measuring, about; a variant that has been started is finished. `thorough`: measures all main
 * variants (`updateVariants`), then those that differ from the fastest one in one setting, until none is faster.
 * Else only the most promising main variants are measured.
 */
interface TuneEffort {
  readonly seconds: number;
  readonly thorough: boolean;
}

/**
 * Fewest operations of all half-iterations of one side for which measuring before a training pays. A large
 * GPU takes about a second for them, a small one about a minute; measuring takes a few seconds.
 */
const WORTHWHILE = 1e14;

/** Seconds of measuring before a training, for each of the two sides. */
const TUNE_SECONDS = 2;

/**
 * Most ratings of the sample that variants are timed on. A hardware GPU takes milliseconds for its sample. A
 * GPU that is emulated in software is far slower, so its sample is smaller.
 */
const SAMPLE = { hardware: 20_000_000, software: 20_000 };

/**
 * Finds the fastest variant (choice of kernels and settings) for a GPU and a problem, by timing variants on a
 * sample of the ratings. Results are stored, so that similar problems of later runs need no timing (clMF,
 * section 3).
 */
export class KernelTuner {
  readonly #info: GpuInfo;
  readonly #kept: TunedKernels;
  readonly #known = new Map<string, TunedVariant | undefined>();

  constructor(info: GpuInfo, kept: TunedKernels) {
    this.#info = info;
    this.#kept = kept;
  }

  /**
   * The variant that this or an earlier process measured to be fastest for a similar problem, or undefined.
   */
  async known(problem: UpdateProblem): Promise<TunedVariant | undefined> {
    const key = keyOf(this.#info, problem);
    if (!this.#known.has(key)) this.#known.set(key, await this.#kept.find(key));
    return this.#known.get(key);
  }

  async choose(problem: UpdateProblem): Promise<KernelChoice> {
    return chooseUpdate(this.#info, problem, await this.known(problem));
  }

  /**
   * True if measuring before a training pays: the user named no kernel, the GPU is hardware, the problem is
   * large, and no similar problem was measured before. Above MOST_FORMED there is only one kernel for each
   * precision.
   */
  async pays(problem: UpdateProblem): Promise<boolean> {
    const { kernel, ratings, rank, iterations } = problem;
    return (
      kernel === undefined &&
      rank <= MOST_FORMED &&
      !this.#info.software &&
      iterations * ratings * rank * (rank + 1) >= WORTHWHILE &&
      (await this.known(problem)) === undefined
    );
  }

  /**
   * The task `tune-update` (see KernelTasks): measures variants and returns the times and the choice. In mode
   * `where-it-pays` it returns null, without measuring, if measuring would cost more than it gains.
   */
  async tuneOnRequest(
    problem: UpdateProblem,
    how: 'where-it-pays' | 'thorough',
    measure: Measure,
  ): Promise<KernelTuning | null> {
    if (how === 'thorough') return this.tune(problem, { seconds: Infinity, thorough: true }, measure);
    if (!(await this.pays(problem))) return null;
    return this.tune(problem, { seconds: TUNE_SECONDS, thorough: false }, measure);
  }

  /**
   * Measures variants, returns their times, and stores the fastest variant for later runs. If none could be
   * measured, returns the variant that would be chosen without measurements, and stores nothing.
   */
  async tune(
    problem: UpdateProblem,
    { seconds, thorough }: TuneEffort,
    measure: Measure,
  ): Promise<KernelTuning> {
    const info = this.#info;
    const every = everyVariant(info, problem).filter((variant) => servesPrecision(variant, problem));
    const times: VariantTime[] = [];
    let sample: Omit<TimeVariantsTask['values'], 'times'> = { rows: 0, ratings: 0, clock: 'host' };
    const end = performance.now() + 1000 * seconds;
    const tried = new Set<string>();
    for (let next = firstCandidates(info, problem, thorough); next.length > 0;) {
      const left = (end - performance.now()) / 1000;
      if (left <= 0) break;
      for (const { name } of next) tried.add(name);
      const [best] = fastestFirst(times);
      const { times: more, ...measured } = await measure(paramsOf(info, problem, next, left, best));
      sample = measured;
      times.push(...more);
      const [now] = fastestFirst(times);
      next =
        thorough && now !== undefined
          ? neighboursOf(now.variant, every).filter(({ name }) => !tried.has(name))
          : [];
    }
    const { rows, ratings, clock } = sample;
    const [best, second, ...others] = fastestFirst(times);
    const found = { times, rows, ratings, clock };
    if (best === undefined)
      return {
        ...found,
        variant: chooseUpdate(info, problem).variant,
        reason: 'none could be measured; the rule decides',
      };
    // "measured fastest of 7: 12.1 ms against 14.0 ms of tiled8-f32, sample of 2,000,000 ratings"
    const against = second ? ` against ${formatTime(second.milliseconds)} of ${second.variant}` : '';
    const count = others.length + (second ? 2 : 1);
    const reason =
      `measured fastest of ${count}: ${formatTime(best.milliseconds)}${against}, sample of ` +
      `${formatCount(ratings)} ratings`;
    const tuned = { variant: best.variant, reason };
    const key = keyOf(info, problem);
    this.#known.set(key, tuned);
    const note = await this.#kept.keep(key, tuned);
    return { ...found, ...tuned, ...(note === undefined ? {} : { note }) };
  }
}

/**
 * The variants to measure first. With `thorough`, or if the preferred variant uses register tiles, these are
 * all main variants (`updateVariants`). Otherwise there may not be time for all, so variants of different
 * kinds take turns: tensor cores in float16, tensor cores in 8 bits, CG by vectors (only one variant). If the
 * preferred variant uses tensor cores, one variant with register tiles follows.
 */
function firstCandidates(info: GpuInfo, problem: UpdateProblem, thorough: boolean): UpdateVariant[] {
  const main = updateVariants(info, problem).filter((variant) => servesPrecision(variant, problem));
  const first = main[0]?.sum.kernel ?? 'tiled';
  if (thorough || first === 'tiled') return main;
  const of = (kernel: SumKernel['kernel']) => main.filter(({ sum }) => sum.kernel === kernel);
  // Variants in 8 bits that are not fused are only measured if A does not fit float32 registers. There 8 bits
  // may gain more in a kernel that only computes A than in a fused kernel, which also solves.
  const eighths = of('int8').filter(({ fused }) => fused !== undefined || problem.rank > FULL_REGISTERS);
  const kinds = [of('tensor'), eighths, of('vectors').slice(0, 1)];
  const turns = Array.from({ length: Math.max(...kinds.map(({ length }) => length)) }, (_, turn) =>
    kinds.flatMap((kind) => kind.slice(turn, turn + 1)),
  );
  return [...turns.flat(), ...(first === 'tensor' ? of('tiled').slice(0, 1) : [])];
}

function paramsOf(
  info: GpuInfo,
  problem: UpdateProblem,
  variants: readonly UpdateVariant[],
  seconds: number,
  best: { readonly milliseconds: number } | undefined,
): TimeVariantsTask['params'] {
  const { rank, solver, cgSteps, biases, implicit = false, prior = false, columns } = problem;
  const { ratingScale } = chooseUpdate(info, { ...problem, kernel: undefined });
  return {
    rank,
    solver,
    cgSteps,
    biases,
    implicit,
    prior,
    columns,
    ratingScale,
    variants: variants.map(({ name }) => name),
    sample: info.software ? SAMPLE.software : SAMPLE.hardware,
    seconds,
    ...(best && { best: best.milliseconds }),
  };
}

/** The variants that could be measured, by ascending time. */
function fastestFirst(times: readonly VariantTime[]) {
  return times
    .flatMap((time) => (time.milliseconds === null ? [] : [{ ...time, milliseconds: time.milliseconds }]))
    .sort((left, right) => left.milliseconds - right.milliseconds);
}

function formatTime(milliseconds: number): string {
  return `${milliseconds.toFixed(milliseconds < 10 ? 2 : 1)} ms`;
}

/**
 * The key of a measurement in the store. Problems with the same key are similar enough to share the fastest
 * variant. It contains the GPU and its features, rank, solver, biases and precision, and the numbers of rows
 * and columns and the lengths of rows, rounded to powers of two.
 */
function keyOf({ name, vendor, architecture, features }: GpuInfo, problem: UpdateProblem): string {
  const { rank, solver, cgSteps, biases, implicit, prior, precision } = problem;
  const { rows, columns, ratings, longest } = problem;
  const about = (value: number) => `2^${Math.round(Math.log2(Math.max(1, value)))}`;
  const exact = servesPrecision({ precision: 'f16' }, problem) ? '' : ' no f16';
  return [
    `${vendor} ${architecture} ${name}`,
    features.join(' '),
    `rank ${rank}`,
    solver === 'cg' ? `cg ${cgSteps}` : solver,
    `${biases ? 'biases' : implicit ? 'implicit' : 'no biases'}${prior ? ', priors' : ''}`,
    `${precision}${exact}`,
    `${about(rows)} x ${about(columns)}, rows of ${about(ratings / Math.max(1, rows))}, at most ` +
      about(longest),
  ].join('; ');
}
