import { resolve } from 'node:path';
import { type Cell, readSubjects, type Result } from '../../docs/results.ts';
import type { Point } from './course.ts';
import type { CardCourse, Technique } from './published-run.ts';

/** A result of bench/results with its course: points with the seconds since the start. */
export interface CardPoints {
  readonly result: Result;
  readonly points: readonly Point[];
}

const root = resolve(import.meta.dirname, '../../..');

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
