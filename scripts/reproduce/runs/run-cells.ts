/** Cells of the tables that the command prints and the page of published tables shows. */
import { type Point, pointsOf, summarize } from './course.ts';
import { type MeasuredRun, wasBusy } from './measure-run.ts';
import type { PublishedRun } from './published-run.ts';

export type Cells = readonly (readonly string[])[];

const summaryHead = [
  'FactorFlow',
  'ratings',
  'seconds an iteration',
  'million ratings a second',
  'iterations to within 1 %',
  'seconds to within 1 %',
  'last test RMSE',
];

export function publishedCells({ published }: PublishedRun): Cells {
  return [
    ['published', 'hardware', 'figure', 'source'],
    ...published.map(({ system, hardware, figure, source }) => [system, hardware, figure, source]),
  ];
}

/** A row for each course: seconds an iteration, and the way to within 1 % of the last test RMSE. */
export function summaryCells(courses: readonly Course[]): Cells {
  return [summaryHead, ...courses.map(summaryRow)];
}

export interface Course {
  readonly label: string;
  readonly ratings: number;
  readonly points: readonly Point[];
}

export function coursesOf({ ratings, variants }: MeasuredRun): Course[] {
  return variants.map(({ label, iterations }) => ({
    label,
    ratings: ratings.ratings,
    points: pointsOf(iterations),
  }));
}

function summaryRow({ label, ratings, points }: Course): string[] {
  const { secondsAnIteration, near, last } = summarize(points);
  return [
    label,
    ratings.toLocaleString('en-US'),
    significant(secondsAnIteration),
    significant(ratings / secondsAnIteration / 1e6),
    `${near.iterations} of ${last.iterations}`,
    significant(near.seconds),
    last.testRmse.toFixed(4),
  ];
}

/**
 * A row for each iteration: of each variant, seconds since the start, the loss of a rating, the test RMSE.
 */
export function iterationCells({ ratings, variants }: MeasuredRun): Cells {
  const head = variants.flatMap(({ label }) => [`${label}: seconds`, 'loss a rating', 'test RMSE']);
  const courses = variants.map(({ iterations }) => ({ iterations, points: pointsOf(iterations) }));
  const longest = Math.max(...courses.map(({ points }) => points.length));
  const cells = ({ iterations, points }: (typeof courses)[number], k: number) =>
    k < points.length
      ? [
          significant(points[k].seconds),
          (iterations[k].loss / ratings.ratings).toFixed(4),
          points[k].testRmse.toFixed(4),
        ]
      : ['', '', ''];
  return [
    ['iteration', ...head],
    ...Array.from({ length: longest }, (_, k) => [
      String(k + 1),
      ...courses.flatMap((course) => cells(course, k)),
    ]),
  ];
}

/** A row for each technique of an ablation; `card` finds the figure of bench/results, if it is wanted. */
export function techniqueCells(
  { techniques = [] }: PublishedRun,
  measured: MeasuredRun | undefined,
  card?: (figure: NonNullable<Technique['card']>) => string,
): Cells {
  const own = measured && timesOfFirst(measured);
  return [
    ['technique', 'the paper', 'source', ...(card ? ['without it, on the card'] : []), 'without it, here'],
    ...techniques.map((technique) => [
      technique.technique,
      technique.paper,
      technique.source,
      ...(card ? [technique.card === undefined ? '' : card(technique.card)] : []),
      ownCell(technique, own, measured),
    ]),
  ];
}

type Technique = NonNullable<PublishedRun['techniques']>[number];

function ownCell(
  { variant, absent = '' }: Technique,
  own: ReadonlyMap<string, number> | undefined,
  measured: MeasuredRun | undefined,
): string {
  const times = variant === undefined ? undefined : own?.get(variant);
  if (times !== undefined && measured !== undefined && wasBusy(measured))
    return `not comparable: the machine was busy (${variant})`;
  if (times !== undefined) return `${times.toFixed(2)} times as long (${variant})`;
  if (measured?.device.kind === 'gpu') return 'see the table of the bench';
  return variant === undefined ? absent : 'not run';
}

/** Seconds an iteration of each variant, as a multiple of the first one's. */
function timesOfFirst({ variants }: MeasuredRun): ReadonlyMap<string, number> {
  const own = variants.map(({ label, iterations }) => ({
    label,
    time: summarize(pointsOf(iterations)).secondsAnIteration,
  }));
  return new Map(own.map(({ label, time }) => [label, time / own[0].time]));
}

function significant(value: number): string {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 3 });
}
