import { median } from '../measure.ts';
import type { SgdRun, SgdTraining } from './sgd-training.ts';

/**
 * Milliseconds of epochs before timing starts: an idle card has a low clock, and the first epoch arranges the
 * ratings.
 */
const WARM_UP = 400;
/** Approximate milliseconds of timed epochs. */
const TIMED = 600;
/** A longer epoch, in milliseconds, is timed only once; above VERY_SLOW only the first epoch is timed. */
const SLOW = 1000;
const VERY_SLOW = 4000;
const TIMED_KERNELS = 3;

/** Milliseconds per epoch. */
export interface EpochTimes {
  /** Median, lowest and highest, until the host knows that the epoch has ended. */
  readonly wall: number;
  readonly low: number;
  readonly high: number;
  /** Sum of the epoch's kernels by the GPU's clock; undefined without timestamps. */
  readonly onGpu: number | undefined;
  readonly kernels: Readonly<Record<string, number>>;
  /** Of the first epoch, which includes arranging ratings and compiling kernels. */
  readonly first: number;
}

export async function measureEpochs(training: SgdTraining, run: SgdRun): Promise<EpochTimes> {
  const seen: { readonly milliseconds: number; readonly warm: boolean }[] = [];
  const begin = performance.now();
  await training.repeat(run, (milliseconds) => {
    const spent = performance.now() - begin;
    seen.push({ milliseconds, warm: spent - milliseconds > WARM_UP && seen.length > 0 });
    if (milliseconds > SLOW) return seen.length < 2 && milliseconds < VERY_SLOW;
    return spent < WARM_UP + TIMED || seen.length < 4;
  });
  const warm = seen.filter((one) => one.warm).map(({ milliseconds }) => milliseconds);
  const walls = warm.length > 0 ? warm : seen.slice(-1).map(({ milliseconds }) => milliseconds);
  const wall = median(walls);
  const kernels = await kernelTimes(training, run, wall > SLOW ? 1 : TIMED_KERNELS);
  const onGpu = Object.values(kernels).reduce((sum, ms) => sum + ms, 0);
  return {
    wall,
    low: Math.min(...walls),
    high: Math.max(...walls),
    onGpu: onGpu === 0 ? undefined : onGpu,
    kernels,
    first: seen[0].milliseconds,
  };
}

async function kernelTimes(
  training: SgdTraining,
  run: SgdRun,
  epochs: number,
): Promise<Readonly<Record<string, number>>> {
  await training.kernelTimes(true);
  let left = epochs;
  const failure = await training
    .repeat(run, () => --left > 0)
    .then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
  const sums = await training.kernelTimes(false);
  if (failure !== undefined) throw failure.error;
  return Object.fromEntries(Object.entries(sums).map(([kernel, ms]) => [kernel, ms / epochs]));
}
