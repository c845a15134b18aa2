/** Random pairs of tables to join, and the same join as DuckDB's SQL. */
import type { RecordBatch } from 'apache-arrow';
import type { JoinKind } from '../../../../operators/dataflow/join/join-columns.ts';
import { duckdb, duckRows } from '../../../connectors/parquet/parquet-testing.ts';
import { cellsOf } from '../../../engine/expressions/evaluated.ts';
import {
  batchOfCells,
  type Cells,
  drawCells,
  duckTable,
  exactly,
  plainCell,
  type RandomColumn,
  type RandomColumns,
  randomColumns,
} from '../../../engine/expressions/random-rows.ts';

export interface RandomTable {
  readonly columns: RandomColumns;
  readonly cells: Cells;
  readonly whole: RecordBatch;
}

export interface RandomJoin {
  readonly keys: readonly string[];
  readonly left: RandomTable;
  readonly right: RandomTable;
}

const nan = Number.NaN;

/** Columns of keys: few values, so that rows match, and one that half of the rows have. */
function keyColumns(random: () => number): RandomColumns {
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];
  const all = randomColumns(random);
  const skewed = (column: RandomColumn, hot: ReturnType<RandomColumn['draw']>): RandomColumn => ({
    ...column,
    draw: () => (random() < 0.5 ? hot : column.draw()),
  });
  return {
    i: skewed(all.i, 3),
    big: skewed(all.big, 2n ** 53n + 1n),
    huge: all.huge,
    t: skewed(all.t, 'abc'),
    s: all.s,
    b: all.b,
    f: { ...all.f, draw: () => pick([0, -0, nan, 1.5, Math.fround(3.3), -Infinity]) },
    d: { ...all.d, draw: () => pick([0, -0, nan, 0.1, 1e300, Infinity]) },
    dn: all.dn,
    dw: skewed(all.dw, '9999999999999.123456'),
    db: all.db,
    tt: all.tt,
  };
}

const sizes = [0, 1, 7, 60];

export function drawJoin(random: () => number): RandomJoin {
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];
  const all = keyColumns(random);
  const names = Object.keys(all);
  const keys = Array.from(new Set(Array.from({ length: pick([1, 1, 2, 3]) }, () => pick(names))));
  const own = Object.fromEntries(keys.map((name) => [name, all[name]]));
  const nulls = pick([0, 0.2]);
  const plain = randomColumns(random);
  const table = (others: RandomColumns): RandomTable => {
    const columns = random() < 0.5 ? { ...own, ...others } : { ...others, ...own };
    const cells = drawCells(columns, pick(sizes), () => random() < nulls);
    return { columns, cells, whole: batchOfCells(columns, cells) };
  };
  return {
    keys,
    left: table({ x: plain.j, flag: plain.c }),
    right: table({ y: plain.t, day: plain.da }),
  };
}

/** Batches of the rows, cut at random, some of them empty. */
export function batchesOf({ whole }: RandomTable, random: () => number): RecordBatch[] {
  const batches = [whole.slice(0, 0)];
  for (let at = 0; at < whole.numRows;) {
    const end = Math.min(whole.numRows, at + Math.floor(random() * 20));
    batches.push(whole.slice(at, end));
    at = end;
  }
  return batches;
}

/** The kinds of the result's columns by name, in its order. */
export function resultColumns({ keys, left, right }: RandomJoin, kind: JoinKind): RandomColumns {
  if (kind === 'semi' || kind === 'anti') return left.columns;
  const others = ({ columns }: RandomTable) =>
    Object.fromEntries(Object.entries(columns).filter(([name]) => !keys.includes(name)));
  const own = Object.fromEntries(keys.map((name) => [name, left.columns[name]]));
  return { ...own, ...others(left), ...others(right) };
}

/** DuckDB's rows of the join, in any order. */
export async function duckJoin(join: RandomJoin, kind: JoinKind): Promise<string[]> {
  const { keys, left, right } = join;
  const duck = await duckdb();
  for (const [name, { columns, cells }] of [
    ['l', left],
    ['r', right],
  ] as const)
    for (const statement of duckTable(name, columns, cells, 'row')) await duck.run(statement);
  const on = keys.map((name) => `l."${name}" = r."${name}"`).join(' AND ');
  const result = resultColumns(join, kind);
  const list = Object.entries(result).map(([name, { kind: type }]) => {
    const side = left.columns[name] === undefined ? 'r' : 'l';
    const isBoth = keys.includes(name) && kind !== 'semi' && kind !== 'anti';
    const value = isBoth ? `coalesce(l."${name}", r."${name}")` : `${side}."${name}"`;
    return exactly(type, value);
  });
  const from = {
    inner: `l JOIN r ON ${on}`,
    left: `l LEFT JOIN r ON ${on}`,
    right: `l RIGHT JOIN r ON ${on}`,
    full: `l FULL JOIN r ON ${on}`,
    semi: `l WHERE EXISTS (FROM r WHERE ${on})`,
    anti: `l WHERE NOT EXISTS (FROM r WHERE ${on})`,
  }[kind];
  const rows = await duckRows(`SELECT ${list.join(', ')} FROM ${from}`);
  const kinds = Object.values(result).map((column) => column.kind);
  return rows.map((row) => textOf(row.map((cell, i) => plainCell(cell, kinds[i]))));
}

/** Rows of batches as texts. */
export function rowTexts(batches: readonly RecordBatch[], columns: RandomColumns): string[] {
  const kinds = Object.values(columns).map(({ kind }) => kind);
  return batches.flatMap((batch) => {
    const cells = batch.data.children.map((data) => cellsOf(data));
    return Array.from({ length: batch.numRows }, (_, row) =>
      textOf(cells.map((column, i) => plainCell(column[row], kinds[i]))),
    );
  });
}

function textOf(cells: readonly unknown[]): string {
  return cells.map((cell) => (typeof cell === 'string' ? JSON.stringify(cell) : String(cell))).join(' | ');
}
