import type { HalfIterations, IterationTimes, Side, TrainingSetting } from './half-iterations.ts';

/** Milliseconds of work before timing starts: an idle card has a low clock. */
const WARM_UP = 400;

/** A longer iteration, in milliseconds, is timed only once. */
const SLOW = 2000;

/** After this time, in milliseconds, no further iteration is timed, once there are three. */
const ENOUGH = 1000;

const sideNames: readonly Side[] = ['items', 'users'];

/** Medians in milliseconds. */
export interface Measurement {
  /** Of whole iterations, measured by the host. */
  readonly wall: number;
  readonly low: number;
  readonly high: number;
  readonly sides: Readonly<Record<Side, number>>;
  /** On the GPU, by side and kernel: "items solve-cg". */
  readonly kernels: Readonly<Record<string, number>>;
  /** Of the first iteration, which includes making row lists and compiling kernels. */
  readonly first: number;
  /** True if timed only once, from its kernels. */
  readonly once: boolean;
  /** Test RMSE after the requested iterations; NaN if a slow setting ran only one. */
  readonly rmse: number;
  readonly bad: readonly string[];
}

/** Trains from the start for some iterations, then times further ones. */
export async function measure(
  training: HalfIterations,
  setting: TrainingSetting & { readonly iterations?: number },
): Promise<Measurement> {
  const { rank, iterations = 1 } = setting;
  await training.restart(rank);
  const begin = await training.iterate(setting, true);
  const sides = { items: kernelSum(begin, 'items'), users: kernelSum(begin, 'users') };
  const onGpu = sides.items + sides.users;
  if (onGpu > SLOW) {
    const rmse = iterations === 1 ? await training.rmse() : Number.NaN;
    return {
      once: true,
      wall: onGpu,
      low: onGpu,
      high: onGpu,
      sides,
      kernels: kernelMedians([begin]),
      first: begin.wall,
      rmse,
      bad: begin.bad,
    };
  }
  for (let iteration = 1; iteration < iterations; iteration++) await training.iterate(setting);
  const rmse = await training.rmse();
  await warmUp(training, setting);
  const runs = await repeat(() => training.iterate(setting), 3, 9, ENOUGH);
  const timed = await repeat(() => training.iterate(setting, true), 1, 5, ENOUGH / 3);
  const walls = runs.map(({ wall }) => wall);
  return {
    once: false,
    wall: median(walls),
    low: Math.min(...walls),
    high: Math.max(...walls),
    sides: {
      items: median(runs.map(({ sides }) => sides.items)),
      users: median(runs.map(({ sides }) => sides.users)),
    },
    kernels: kernelMedians(timed),
    first: begin.wall,
    rmse,
    bad: begin.bad,
  };
}

/** Iterates until the card has reached its full clock. */
export async function warmUp(training: HalfIterations, setting: TrainingSetting): Promise<void> {
  for (const begin = performance.now(); performance.now() - begin < WARM_UP;) await training.iterate(setting);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

async function repeat<T>(
  run: () => Promise<T>,
  least: number,
  most: number,
  milliseconds: number,
): Promise<T[]> {
  const results: T[] = [];
  const begin = performance.now();
  while (results.length < least || (results.length < most && performance.now() - begin < milliseconds))
    results.push(await run());
  return results;
}

function kernelSum({ kernels, sides }: IterationTimes, side: Side): number {
  const times = Object.values(kernels[side]);
  return times.length === 0 ? sides[side] : times.reduce((sum, ms) => sum + ms, 0);
}

function kernelMedians(iterations: readonly IterationTimes[]): Record<string, number> {
  const all: Record<string, number[]> = {};
  for (const { kernels } of iterations) {
    for (const side of sideNames)
      for (const [name, ms] of Object.entries(kernels[side])) (all[`${side} ${name}`] ??= []).push(ms);
  }
  return Object.fromEntries(Object.entries(all).map(([name, times]) => [name, median(times)]));
}
