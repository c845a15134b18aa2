/** Measured results: the JSON files of bench/results/, whose README.md explains the form. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { markdownTable } from './markdown.ts';

/** A number, a text, several runs, a value with its range, or a range; null: not measured. */
export type Cell =
  | number
  | string
  | null
  | readonly number[]
  | { readonly value?: number; readonly range: readonly [least: number, most: number] };

interface Column {
  readonly name: string;
  /** `ratio` for comparisons. */
  readonly unit?: string;
}

export interface Result {
  readonly id: string;
  readonly title: string;
  /** A day (UTC), or several in words. */
  readonly date: string;
  /** A name of machines.json. */
  readonly machine: string;
  readonly commit?: string;
  /** Other work on the machine, or environment settings. */
  readonly conditions?: string;
  /** The origin of the ratings. */
  readonly data?: string;
  /** Commands that reproduce the figures. */
  readonly commands: readonly string[];
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  readonly meaning: string;
  /** Names of pages in docs/decisions/. */
  readonly decisions?: readonly string[];
  /** True or the number of rows to show as a table on the page; otherwise one line names the result. */
  readonly shown?: boolean | number;
}

interface Subject {
  readonly subject: string;
  readonly title: string;
  readonly about: string;
  readonly results: readonly Result[];
}

interface Machine {
  readonly hardware: string;
  readonly system: string;
  readonly node: string;
  readonly driver?: string;
}

/** Subjects in the order of the page; other files come last. */
const order = [
  'main',
  'als-gpu',
  'sgd-gpu',
  'training-cpu',
  'whole-commands',
  'large-problems',
  'several-cards',
  'memory-and-checkpoints',
  'reading-writing',
  'dataflow',
  'serving-ranking',
  'searches',
  'spark',
  'als-steps-quality',
  'als-techniques',
];

export function readSubjects(root: string): Subject[] {
  const places = new Map(order.map((subject, place) => [subject, place]));
  const place = ({ subject }: Subject) => places.get(subject) ?? order.length;
  return readdirSync(join(root, 'bench/results'))
    .filter((name) => name.endsWith('.json') && name !== 'machines.json')
    .sort()
    .map((name) => readJson<Subject>(root, name))
    .sort((a, b) => place(a) - place(b));
}

export function readMachines(root: string): Readonly<Record<string, Machine>> {
  return readJson(root, 'machines.json');
}

function readJson<T>(root: string, name: string): T {
  return JSON.parse(readFileSync(join(root, 'bench/results', name), 'utf8')) as T;
}

/** docs/measured/performance.md: the results of bench/results/ as tables, one number a cell. */

const introduction = `# Performance

Measured figures, with machine, day and command. Speed on another machine differs: run the same command there.
\`npm run docs\` makes this page of \`bench/results/*.json\`, which have all runs, ranges and further results by the
names in code type. A cell has the median of its runs. *takes* is the part of the other's time (below 1: faster);
*times as fast* is its inverse. Commits of builds were not noted before 2026-11-27. Ideas that were tried and not
kept are in [decisions](../decisions/README.md).
`;

export function performancePage(root: string): string {
  const subjects = readSubjects(root);
  return [introduction, machineTable(readMachines(root)), ...subjects.map(part)].join('\n');
}

function machineTable(machines: Readonly<Record<string, Machine>>): string {
  const rows = Object.entries(machines).map(([name, { hardware, system, node, driver }]) => [
    name,
    hardware,
    `${system}, Node ${node}${driver === undefined ? '' : `, driver ${driver}`}`,
  ]);
  return markdownTable([['machine', 'hardware', 'system'], ...rows]);
}

function part({ subject, title, about, results }: Subject): string {
  const shown = results.filter((result) => result.shown);
  const others = results.filter((result) => !result.shown).map(({ id, title }) => `${title} (\`${id}\`)`);
  const more = others.length === 0 ? '' : ` Also in \`bench/results/${subject}.json\`: ${others.join('; ')}.`;
  return [`## ${title}\n\n${about}${more}\n`, ...shown.map(section)].join('\n');
}

function section(result: Result): string {
  const { id, title, columns, rows, shown, meaning, decisions = [] } = result;
  const cells = rows.slice(0, typeof shown === 'number' ? shown : undefined).map((row) => row.map(shownCell));
  const links = decisions.map((name) => `[${name}](../decisions/${name}.md)`);
  const tried = links.length === 0 ? '' : ` Tried: ${links.join(', ')}.`;
  const figures = markdownTable([columns.map(heading), ...cells]);
  return `### ${title}\n\n${figures}\n${meaning}${tried} (\`${id}\`: ${origin(result)}.)\n`;
}

/** Day, machine, data and the first command. */
function origin({ date, machine, conditions, data, commands }: Result): string {
  const place = [date, machine, conditions, data].filter((text) => text !== undefined).join('; ');
  return `${place}; ${commands.length === 0 ? 'its command was not noted' : `\`${commands[0]}\``}`;
}

function heading({ name, unit }: Column): string {
  return unit === undefined || unit === 'ratio' ? name : `${name}, ${unit}`;
}

/** The median of runs; a range only where there is nothing else. */
export function shownCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'number') return numberText(cell);
  if ('range' in cell) {
    return cell.value === undefined ? cell.range.map(numberText).join(' to ') : numberText(cell.value);
  }
  return numberText(median(cell));
}

function median(runs: readonly number[]): number {
  const sorted = [...runs].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle];
  return Number(((sorted[middle - 1] + sorted[middle]) / 2).toPrecision(6));
}

function numberText(value: number): string {
  return Math.abs(value) >= 10_000 ? value.toLocaleString('en-US') : String(value);
}
