/** An iteration or epoch of a training. */
export interface Iteration {
  readonly iteration: number;
  /** Of this iteration alone. */
  readonly seconds: number;
  readonly loss: number;
  readonly testRmse: number;
}

/** A point of a course: iterations and seconds since the start. */
export interface Point {
  readonly iterations: number;
  readonly seconds: number;
  readonly testRmse: number;
}

export interface Summary {
  readonly secondsAnIteration: number;
  /** The first point from which on the test RMSE stays within `NEAR` of its last value. */
  readonly near: Point;
  readonly last: Point;
}

/** Part of the last test RMSE. */
export const NEAR = 0.01;

export function pointsOf(iterations: readonly Iteration[]): Point[] {
  let seconds = 0;
  return iterations.map((one) => {
    seconds += one.seconds;
    return { iterations: one.iteration, seconds, testRmse: one.testRmse };
  });
}

/** Seconds an iteration are the median of those after the first, which waits for compilers and caches. */
export function summarize(points: readonly Point[]): Summary {
  const last = points.at(-1);
  if (last === undefined) throw new Error('a course without iterations');
  const outside = points.findLastIndex(({ testRmse }) => Math.abs(testRmse / last.testRmse - 1) > NEAR);
  return { secondsAnIteration: median(steps(points)), near: points[outside + 1], last };
}

/** Seconds of each iteration; between points that are several iterations apart, their mean. */
function steps(points: readonly Point[]): number[] {
  const all = points.map(({ iterations, seconds }, k) => {
    const before = points[k - 1] ?? { iterations: 0, seconds: 0 };
    return (seconds - before.seconds) / (iterations - before.iterations);
  });
  return all.length > 1 ? all.slice(1) : all;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
}
