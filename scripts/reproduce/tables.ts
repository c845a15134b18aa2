/** Tables that the command prints and the page of published tables shows. */
import { resolve } from 'node:path';
import { type Cell, readSubjects, type Result } from '../docs/results.ts';
import { type Iteration, type MeasuredRun, wasBusy } from './measure-run.ts';
import type { CardCourse, PublishedRun, Technique } from './runs.ts';
import type { ResultRow } from './sets.ts';

/** The heading, with the metrics by their length, and a row for each method. */
export function resultCells(rows: readonly ResultRow[]): string[][] {
  const metrics = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))].toSorted(byNameAndLength);
  return [
    ['method', ...metrics],
    ...rows.map(({ name, values }) => [name, ...metrics.map((metric) => values[metric]?.toFixed(4) ?? '')]),
  ];
}

function byNameAndLength(a: string, b: string): number {
  const [first, second] = [a, b].map((metric) => metric.split('@'));
  return Number(first[1]) - Number(second[1]) || first[0].localeCompare(second[0]);
}

/** Cells as lines of text, each column as wide as its widest cell. */
export function textTable(cells: readonly (readonly string[])[]): string {
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  return cells
    .map((row) =>
      row
        .map((cell, k) => cell.padEnd(widths[k]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** A result of bench/results with its course: points with the seconds since the start. */
interface CardPoints {
  readonly result: Result;
  readonly points: readonly Point[];
}

const root = resolve(import.meta.dirname, '../..');

/** The course of a GPU run that bench/results has. */
export function cardPoints({ result: id, where, counted }: CardCourse): CardPoints {
  const result = resultOf(id);
  const cell = columnsOf(result);
  const rows = result.rows.filter((row) =>
    Object.entries(where).every(([column, text]) => cell(row, column) === text),
  );
  if (rows.length === 0) throw new Error(`result ${id} has no rows with ${JSON.stringify(where)}`);
  const points = rows.map((row) => ({
    iterations: Number(cell(row, counted)),
    seconds: Number(cell(row, 'seconds')),
    testRmse: Number(cell(row, 'test RMSE')),
  }));
  return { result, points };
}

/** A figure of a row of a result, with the row's name. */
export function cardFigure({ result: id, row: name, column }: NonNullable<Technique['card']>): string {
  const result = resultOf(id);
  const cell = columnsOf(result);
  const row = result.rows.find(([first]) => first === name);
  const value = row && cell(row, column);
  if (typeof value !== 'number') throw new Error(`result ${id} has no ${column} of "${name}"`);
  return `${value} times as long (${name}; result \`${id}\`)`;
}

function resultOf(id: string): Result {
  const found = readSubjects(root)
    .flatMap(({ results }) => results)
    .find((result) => result.id === id);
  if (found === undefined) throw new Error(`bench/results has no result ${id}`);
  return found;
}

function columnsOf({ id, columns }: Result): (row: readonly Cell[], name: string) => Cell {
  return (row, name) => {
    const place = columns.findIndex((column) => column.name === name);
    if (place < 0) throw new Error(`result ${id} has no column ${name}`);
    return row[place];
  };
}

/** A point of a course: iterations and seconds since the start. */
interface Point {
  readonly iterations: number;
  readonly seconds: number;
  readonly testRmse: number;
}

interface Summary {
  readonly secondsAnIteration: number;
  /** The first point from which on the test RMSE stays within `NEAR` of its last value. */
  readonly near: Point;
  readonly last: Point;
}

/** Part of the last test RMSE. */
const NEAR = 0.01;

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

type Cells = readonly (readonly string[])[];

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

interface Course {
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
