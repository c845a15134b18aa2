/** The files of bench/results/ have the form of their README.md, and the page made of them is short. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type Cell,
  performancePage,
  readMachines,
  readSubjects,
  type Result,
  shownCell,
} from '../../scripts/docs/results.ts';

const root = resolve(import.meta.dirname, '../..');
const machines = readMachines(root);
const subjects = readSubjects(root);
const results = subjects.flatMap(({ results }) => results);
const members = {
  required: ['id', 'title', 'date', 'machine', 'commands', 'columns', 'rows', 'meaning'],
  optional: ['commit', 'conditions', 'data', 'decisions', 'shown'],
};

describe('bench/results', () => {
  it('has a file for each subject, named after it', () => {
    expect(subjects.length).toBeGreaterThan(10);
    for (const { subject, title, about } of subjects) {
      expect(existsSync(join(root, `bench/results/${subject}.json`)), subject).toBe(true);
      expect(
        [title, about].every((text) => text.length > 0),
        subject,
      ).toBe(true);
    }
  });

  it('names each machine with hardware, system and Node, and no machine in vain', () => {
    for (const [name, { hardware, system, node }] of Object.entries(machines)) {
      expect(
        [hardware, system, node].every((text) => text.length > 0),
        name,
      ).toBe(true);
      expect(
        results.some(({ machine }) => machine === name),
        name,
      ).toBe(true);
    }
  });

  it('gives each result an id of its own', () => {
    const ids = results.map(({ id }) => id);
    expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
    expect(ids.filter((id) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(id))).toEqual([]);
  });

  it.each(results.map((result) => [result.id, result] as const))('%s has the form', (_, result) => {
    const names = Object.keys(result);
    expect(members.required.filter((name) => !names.includes(name))).toEqual([]);
    expect(names.filter((name) => ![...members.required, ...members.optional].includes(name))).toEqual([]);
    expect(problems(result)).toEqual([]);
  });

  it('is named by comments and pages by ids that exist', () => {
    const files = globSync(['*/**/*.ts', 'docs/decisions/*.md'], {
      cwd: root,
      exclude: ['node_modules/**', 'build/**', 'dist/**'],
    });
    const named = files.flatMap((file) =>
      Array.from(
        readFileSync(join(root, file), 'utf8').matchAll(/bench\/results, `([a-z0-9-]+)`/g),
        ([, id]) => id,
      ),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((id) => !results.some((result) => result.id === id))).toEqual([]);
  });
});

describe('the page of measured results', () => {
  it('has at most 300 lines', () => {
    expect(performancePage(root).split('\n').length).toBeLessThanOrEqual(300);
  });

  it('names every result', () => {
    const page = performancePage(root);
    expect(results.filter(({ id }) => !page.includes(`\`${id}\``)).map(({ id }) => id)).toEqual([]);
  });

  it('shows one number for runs and for a value with a range', () => {
    expect(shownCell([3, 1, 2])).toBe('2');
    expect(shownCell([0.0141, 0.014])).toBe('0.01405');
    expect(shownCell({ value: 5, range: [4, 7] })).toBe('5');
    expect(shownCell({ range: [4, 7] })).toBe('4 to 7');
    expect(shownCell(null)).toBe('');
    expect(shownCell(20_041)).toBe('20,041');
  });
});

function problems({ date, machine, columns, rows, meaning, decisions = [] }: Result): string[] {
  const names = columns.map(({ name, unit }) => `${name} ${unit ?? ''}`);
  const checks: Readonly<Record<string, boolean>> = {
    'date is a day': /^\d{4}-\d\d-\d\d( (to|and) \d{4}-\d\d-\d\d)*$/.test(date),
    'machine is in machines.json': machine in machines,
    'columns differ': new Set(names).size === names.length,
    'rows have a cell a column': rows.length > 0 && rows.every((row) => row.length === columns.length),
    'cells are numbers, texts, runs or ranges': rows.flat().every(isCell),
    'no column is empty': columns.every((_, i) => rows.some((row) => row[i] !== null)),
    'it says what follows': meaning.trim().length > 0,
    'pages of decisions exist': decisions.every((name) =>
      existsSync(join(root, `docs/decisions/${name}.md`)),
    ),
  };
  return Object.keys(checks).filter((name) => !checks[name]);
}

function isCell(cell: Cell): boolean {
  if (cell === null || typeof cell === 'string') return cell !== '';
  if (typeof cell === 'number') return Number.isFinite(cell);
  if (!('range' in cell)) return cell.length > 0 && cell.every((run) => Number.isFinite(run));
  const [least, most] = cell.range;
  return least <= most && (cell.value === undefined || (least <= cell.value && cell.value <= most));
}
