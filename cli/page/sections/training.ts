import { formatCount } from '../../../engine/format.ts';
import { Plot } from '../../generated/charts.js';
import type { Baselines, TrainingIteration } from '../../report/measured.ts';
import { type Chart, fill, type Series, stroke, type Tip } from '../figure.ts';
import type { Section } from '../page.ts';

export interface TrainingCourse {
  readonly called: 'iteration' | 'epoch';
  readonly iterations: readonly TrainingIteration[];
  readonly bestIteration: number;
  readonly baselines?: Baselines | undefined;
}

/** Larger numbers are shown in thousands and millions. */
const LARGE = 10_000;

/** With more points a line has no dots. */
const MOST_DOTS = 60;

/** A quantity that is measured after each iteration. */
interface Curve extends Series {
  readonly of: (one: TrainingIteration) => number | undefined;
  readonly rules?: readonly Rule[];
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** The measured quantities, most important first: the test error or metric, the training error, the loss. */
function curvesOf({ iterations, baselines }: TrainingCourse): Curve[] {
  const rules = baselines
    ? [
        { name: 'damped means', value: baselines.dampedMeans.rmse },
        { name: 'the mean', value: baselines.mean.rmse },
      ]
    : [];
  const metrics = Object.keys(iterations[0]?.testMetrics ?? {}).map((name): Curve => ({
    name: `test ${name}`,
    style: 0,
    of: ({ testMetrics }) => testMetrics?.[name],
  }));
  const all: Curve[] = [
    { name: 'test RMSE', style: 0, of: ({ testRmse }) => testRmse, rules },
    ...metrics,
    { name: 'train RMSE', style: 1, of: ({ trainRmse }) => trainRmse },
    { name: 'loss', style: 2, of: ({ loss }) => loss },
  ];
  return all.filter(({ of }) => iterations.some((one) => Number.isFinite(of(one))));
}

/** The course of the most important quantity, for the first screen. */
export function leadCurve(course: TrainingCourse): readonly Chart[] {
  return curvesOf(course)
    .slice(0, 1)
    .map((curve) => byIteration(curve, course, 0.36));
}

/** The other quantities, the most important one by time, and a table of all. */
export function trainingSection(course: TrainingCourse): Section {
  const { called, iterations, bestIteration } = course;
  const curves = curvesOf(course);
  const others = curves.slice(1).map((curve) => byIteration(curve, course, 0.4));
  const shown = (value: number | undefined, name: string) =>
    value === undefined ? '' : name === 'loss' ? value.toPrecision(7) : value.toFixed(4);
  const rows = thinned(iterations).map((one) => [
    String(one.iteration),
    one.seconds.toFixed(3),
    ...curves.map(({ name, of }) => shown(of(one), name)),
  ]);
  const fromSolve = iterations.some((one) => one.fromSolve)
    ? ' Loss and train RMSE before the last are computed by the solve, the last by a pass over the ratings.'
    : '';
  return {
    heading: called === 'epoch' ? 'Epochs' : 'Iterations',
    text: `The model is ${called} ${formatCount(bestIteration)}. Seconds are of the ${called}s alone, without evaluation.${fromSolve}`,
    charts: [...others, ...curves.slice(0, 1).map((curve) => byTime(curve, course))],
    tables: [{ head: [called, 'seconds', ...curves.map(({ name }) => name)], rows, numbers: () => true }],
  };
}

function byIteration(curve: Curve, course: TrainingCourse, shape: number): Chart {
  const { called, iterations, bestIteration } = course;
  const points = pointsOf(curve, iterations, ({ iteration }) => iteration);
  const ticks = (width: number) => ({
    ticks: Math.min(iterations.length, width < 500 ? 6 : 12),
    tickFormat: (x: number) => (Number.isInteger(x) ? String(x) : ''),
  });
  return curveChart({
    title: `${titled(curve.name)} by ${called}`,
    curve,
    points,
    called,
    best: bestIteration,
    shape,
    axis: (width) => ({ label: called, ...ticks(width) }),
  });
}

function byTime(curve: Curve, { iterations }: TrainingCourse): Chart {
  let passed = 0;
  const points = pointsOf(curve, iterations, ({ seconds }) => (passed += seconds));
  return curveChart({
    title: `${titled(curve.name)} by time`,
    curve,
    points,
    called: 'second',
    shape: 0.4,
    axis: () => ({ label: 'seconds' }),
  });
}

interface CurveChart {
  readonly title: string;
  readonly curve: Curve;
  readonly points: readonly Point[];
  readonly called: 'iteration' | 'epoch' | 'second';
  /** The model's iteration. */
  readonly best?: number;
  /** Height relative to the width. */
  readonly shape: number;
  readonly axis: (width: number) => Plot.ScaleOptions;
}

function curveChart({ title, curve, points, called, best, shape, axis }: CurveChart): Chart {
  const { name, style, rules = [] } = curve;
  const { domain, has } = ownScale(
    points.map(({ y }) => y),
    rules,
  );
  const inside = points.filter(({ y }) => has(y));
  const near = rules.filter(({ value }) => has(value));
  const chosen = inside.filter(({ x }) => x === best);
  const large = points.some(({ y }) => Math.abs(y) >= LARGE);
  return {
    title,
    summary: summaryOf(curve, points, called, has),
    tips:
      points.length > 4 * MOST_DOTS
        ? []
        : inside.map(({ x, y }): Tip => ({
            x,
            y,
            text: `${called} ${called === 'second' ? x.toPrecision(3) : x}${x === best ? ', the model' : ''}\n${name} ${figure(y)}`,
          })),
    options: (width) => ({
      height: Math.max(210, Math.round(shape * width)),
      marginLeft: 56,
      marginTop: 24,
      marginRight: 24,
      marginBottom: 44,
      x: { ...axis(width), labelOffset: 40, domain: spread(points) },
      y: { label: name, grid: true, domain, ticks: 5, ...(large ? { tickFormat: '~s' } : {}) },
      marks: [
        ...near.flatMap(({ name: rule, value }) => [
          Plot.ruleY([value], { stroke: 'currentColor', strokeOpacity: 0.5, strokeDasharray: '3 4' }),
          Plot.text([value], {
            frameAnchor: 'right',
            y: (y: number) => y,
            dy: -7,
            textAnchor: 'end',
            text: () => `${rule} ${value.toFixed(4)}`,
          }),
        ]),
        Plot.lineY(inside, { x: 'x', y: 'y', ...stroke(style) }),
        ...(points.length > MOST_DOTS ? [] : [Plot.dot(inside, { x: 'x', y: 'y', r: 3, ...fill(style) })]),
        Plot.dot(points.length > 1 ? chosen : [], {
          x: 'x',
          y: 'y',
          r: 6,
          stroke: stroke(style).stroke,
          strokeWidth: 2,
        }),
      ],
    }),
  };
}

/** The course in words, including values outside the scale. */
function summaryOf(
  { name, rules = [] }: Curve,
  points: readonly Point[],
  called: string,
  has: (value: number) => boolean,
): string {
  const [first, last] = [points[0], points[points.length - 1]];
  const course =
    points.length === 1 ? `${name} ${figure(first.y)}` : `From ${figure(first.y)} to ${figure(last.y)}`;
  const beyond = [
    ...points
      .filter(({ y }) => !has(y))
      .map(({ x, y }) => `${called} ${called === 'second' ? x.toPrecision(3) : x} (${figure(y)})`),
    ...rules.filter(({ value }) => !has(value)).map((rule) => `${rule.name} (${figure(rule.value)})`),
  ];
  return `${course}${beyond.length === 0 ? '' : `; beyond the scale: ${beyond.length > 4 ? `${beyond.slice(0, 3).join(', ')} and ${beyond.length - 3} more` : beyond.join(', ')}`}.`;
}

function pointsOf(
  { of }: Curve,
  iterations: readonly TrainingIteration[],
  place: (one: TrainingIteration) => number,
): Point[] {
  return iterations.flatMap((one) => {
    const [x, y] = [place(one), of(one)];
    return y === undefined || !Number.isFinite(y) ? [] : [{ x, y }];
  });
}

/** The range of x, also for a single point. */
function spread(points: readonly Point[]): readonly [number, number] {
  const [first, last] = [points[0].x, points[points.length - 1].x];
  return first === last ? [first - 1, first + 1] : [first, last];
}

function figure(value: number): string {
  if (Math.abs(value) >= LARGE && Math.abs(value) < 1e15) return formatCount(Math.round(value));
  return Math.abs(value) < LARGE && Math.abs(value) >= 0.01 ? value.toFixed(4) : value.toPrecision(5);
}

/** "Test RMSE" */
function titled(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** At most a hundred rows, including the first and the last. */
function thinned(iterations: readonly TrainingIteration[]): readonly TrainingIteration[] {
  const every = Math.ceil(iterations.length / 100);
  return iterations.filter((_, at) => at % every === 0 || at === iterations.length - 1);
}

/** A reference line across a chart, such as the error of means. */
interface Rule {
  readonly name: string;
  readonly value: number;
}

/** The range of values that a chart shows. */
interface OwnScale {
  readonly domain: readonly [least: number, most: number];
  /** False for values outside the range, which would flatten the others. */
  readonly has: (value: number) => boolean;
}

/** Rules widen a scale by at most this factor of its range. */
const MOST_WIDER = 2;

/** If values differ by less than this fraction, the chart shows the difference as small. */
const LEAST_PART = 0.01;

/**
 * Least margin, for example if all values are zero: a range near the smallest float would have infinitely
 * many ticks.
 */
const LEAST_MARGIN = 1e-9;

/** With fewer values than this, all are shown. */
const FEW = 4;

/**
 * A scale on which the course of the values is visible: the first value and rules are included only if they
 * are near the others.
 */
export function ownScale(values: readonly number[], rules: readonly Rule[] = []): OwnScale {
  const main = values.length < FEW ? values : values.slice(1);
  let [least, most] = [Math.min(...main), Math.max(...main)];
  const room = MOST_WIDER * Math.max(most - least, LEAST_PART * Math.abs(most));
  const [low, high] = [least - room, most + room];
  for (const value of [...values, ...rules.map((rule) => rule.value)]) {
    if (!(value >= low && value <= high)) continue;
    [least, most] = [Math.min(least, value), Math.max(most, value)];
  }
  const margin = Math.max(
    0.06 * (most - least),
    (LEAST_PART * Math.abs(most) - (most - least)) / 2,
    LEAST_MARGIN,
  );
  return { domain: [least - margin, most + margin], has: (value) => value >= least && value <= most };
}
