/** Runs a case of bench/cases/: its engines in turn, round by round, as a table or as JSON for bench/results/. */
import { execFileSync } from 'node:child_process';
import type { Cell, Result } from '../scripts/docs/results.ts';
import { describeMachine } from './machine.ts';

/** A cell for each column that is known. */
export type Values = Readonly<Record<string, number | string | undefined>>;

/** One piece of work, and the ways to do it. The others are compared with the first. */
export interface Row {
  readonly name: string;
  readonly engines: Readonly<Record<string, (round: number) => Promise<Values> | Values>>;
}

export interface Case {
  /** Describes the measurement, its words and its options, for the list of cases. */
  readonly about: string;
  /** Words after the name of the case: "FOLDER". */
  readonly words?: string;
  /** Defaults of the options that only this case has. */
  readonly options?: Readonly<Record<string, string>>;
  /** Columns and their units, '' for none. Ratios are of the first. */
  readonly columns: Readonly<Record<string, string>>;
  /** Rounds by default; 3 if not given. */
  readonly rounds?: number;
  /** Rounds before those that count; 0 if not given. */
  readonly warmUp?: number;
  /** How rounds become one figure: the median if not given. */
  readonly figure?: (values: readonly number[]) => number;
  rows(given: Given): Iterable<Row> | AsyncIterable<Row>;
}

/** What the command line asks for. */
export interface Given {
  readonly words: readonly string[];
  readonly options: Readonly<Record<string, string>>;
  /** Main files of the command, by the name of the build: this one, or those of `--builds`. */
  readonly builds: Readonly<Record<string, string>>;
  /** An empty folder that is removed at the end. */
  readonly scratch: string;
}

export interface RunOptions {
  readonly name: string;
  readonly rounds: number | undefined;
  readonly json: boolean;
}

export async function runCase(bench: Case, given: Given, { name, rounds, json }: RunOptions): Promise<void> {
  const columns = Object.keys(bench.columns);
  const figure = bench.figure ?? median;
  const print = json ? console.error : console.log;
  const cells: Cell[][] = [];
  print(`${describeMachine()}\n`);
  const heads = columns.map((column) => `${column}${bench.columns[column] && `, ${bench.columns[column]}`}`);
  print(`| ${[name, 'engine', ...heads, 'of the first'].join(' | ')} |`);
  print(`|${'---|'.repeat(columns.length + 3)}`);
  for await (const row of bench.rows(given)) {
    const runs = await runRow(row, rounds ?? bench.rounds ?? 3, bench.warmUp ?? 0);
    const first = Object.values(runs)[0];
    for (const [engine, own] of Object.entries(runs)) {
      if (typeof own === 'string') {
        print(`| ${row.name} | ${engine} | ${own} |`);
        continue;
      }
      const all = columns.map((column) => own.map((values) => values[column]));
      const ratio = typeof first === 'string' ? undefined : ratioOf(own, first, columns[0], figure);
      const shown = all.map((values) => shownRuns(values, figure));
      print(`| ${[row.name, engine, ...shown, ratio?.toFixed(3) ?? ''].join(' | ')} |`);
      cells.push([row.name, engine, ...all.map(cellOf)]);
    }
  }
  if (json) console.log(newResult(name, bench, given, cells));
}

/** The values of each engine, by round; the error's text of an engine that fails. */
async function runRow({ engines }: Row, rounds: number, warmUp: number) {
  const runs: Record<string, Values[] | string> = {};
  for (let round = -warmUp; round < rounds; round++)
    for (const [engine, run] of Object.entries(engines)) {
      const own = (runs[engine] ??= []);
      if (typeof own === 'string') continue;
      try {
        const values = await run(round);
        if (round >= 0) own.push(values);
      } catch (error) {
        runs[engine] = error instanceof Error ? error.message.split('\n')[0].slice(0, 300) : String(error);
      }
    }
  return runs;
}

/** The figure of the ratios within a round. */
function ratioOf(
  own: readonly Values[],
  first: readonly Values[],
  column: string,
  figure: (values: readonly number[]) => number,
): number | undefined {
  const ratios = own.map((values, round) => Number(values[column]) / Number(first[round]?.[column]));
  return ratios.every((ratio) => Number.isFinite(ratio)) ? figure(ratios) : undefined;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function shownRuns(
  values: readonly (number | string | undefined)[],
  figure: (values: readonly number[]) => number,
): string {
  const numbers = values.filter((value) => typeof value === 'number');
  if (numbers.length === 0) return String(values[0] ?? '');
  const digits = (value: number) => String(Number(value.toPrecision(4)));
  const range = [Math.min(...numbers), Math.max(...numbers)].map(digits);
  return `${digits(figure(numbers))}${range[0] === range[1] ? '' : ` (${range.join(' to ')})`}`;
}

function cellOf(values: readonly (number | string | undefined)[]): Cell {
  const known = values.filter((value) => typeof value === 'number');
  if (known.length === 0) return values[0] ?? null;
  return known.length === 1 ? known[0] : known;
}

/**
 * The JSON of a new measurement, for a file of bench/results/, with today's date and the current commit. Edit
 * by hand: replace `machine`, which describes this machine, by a name of machines.json, and write in
 * `meaning` what follows from the figures.
 */
function newResult(name: string, { about, columns }: Case, { words }: Given, rows: Cell[][]): string {
  const result: Result = {
    id: name,
    title: about.split('. ')[0],
    date: new Date().toISOString().slice(0, 10),
    machine: describeMachine(),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    data: words.join(' '),
    commands: [`node bench/bench.ts ${process.argv.slice(2).join(' ')}`],
    columns: [
      { name },
      { name: 'engine' },
      ...Object.entries(columns).map(([column, unit]) => ({ name: column, ...(unit && { unit }) })),
    ],
    rows,
    meaning: '',
  };
  return JSON.stringify(result, null, 2);
}
