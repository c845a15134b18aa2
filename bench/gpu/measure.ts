import { median, type Values } from '../harness.ts';
import type { HalfIterations, IterationTimes, Side, TrainingSetting } from './training.ts';

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

/** Milliseconds of an iteration (time), of its sides, and of kernels whose names start with a word, on both sides. */
export const measureColumns = {
  time: 'ms',
  users: 'ms',
  items: 'ms',
  'in place': 'ms',
  sums: 'ms',
  solver: 'ms',
  'short rows': 'ms',
  'test RMSE': '',
  kernels: 'ms',
};

const kernelsOf = {
  'in place': ['update-tensor'],
  sums: ['normal-equations'],
  solver: ['solve-'],
  'short rows': ['update-short', 'to-half'],
} as const;

/** A measurement as cells of these columns. */
export async function measuredBy(
  training: HalfIterations,
  setting: TrainingSetting & { readonly iterations?: number },
): Promise<Values> {
  const { wall, sides, kernels, rmse, bad } = await measure(training, setting);
  if (bad.length > 0) throw new Error(`not finite: ${bad.join(', ')}`);
  const times = Object.entries(kernels);
  const sum = (beginnings: readonly string[]) =>
    times
      .filter(([name]) => beginnings.some((beginning) => name.split(' ')[1].startsWith(beginning)))
      .reduce((total, [, ms]) => total + ms, 0) || undefined;
  return {
    time: wall,
    ...sides,
    ...Object.fromEntries(Object.entries(kernelsOf).map(([column, beginnings]) => [column, sum(beginnings)])),
    'test RMSE': Number.isNaN(rmse) ? undefined : rmse,
    kernels: times.map(([name, ms]) => `${name} ${ms.toFixed(2)}`).join('; '),
  };
}
