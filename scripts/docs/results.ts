/** Measured results: the JSON files of bench/results/, whose README.md explains the form. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A number, a text, several runs, a value with its range, or a range; null: not measured. */
export type Cell =
  | number
  | string
  | null
  | readonly number[]
  | { readonly value?: number; readonly range: readonly [least: number, most: number] };

export interface Column {
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

export interface Subject {
  readonly subject: string;
  readonly title: string;
  readonly about: string;
  readonly results: readonly Result[];
}

export interface Machine {
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
  const place = ({ subject }: Subject) => {
    const found = order.indexOf(subject);
    return found < 0 ? order.length : found;
  };
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
