/** Random values of columns of all types, as Arrow and as DuckDB's SQL. */
import { type Data, FixedSizeBinary, makeData, type RecordBatch } from 'apache-arrow';
import { DAY, dateText, timestampText } from '../../../engine/expressions/civil.ts';
import { isTimestamp, type ValueType } from '../../../engine/expressions/types.ts';
import { batchOf, type Cell, column } from './evaluated.ts';
import type { Columns, Kind } from './random-expressions.ts';

/** `wide`: integers that are only compared; lists are of texts. */
export type ColumnKind = Kind | 'wide' | 'zoned' | 'list';

/** The time zone of `zoned` columns, and of DuckDB's session. */
export const ZONE = 'America/Los_Angeles';

export interface RandomColumn {
  readonly type: ValueType;
  /** Texts of UUIDs, which Arrow has as 16 bytes. */
  readonly isUuid?: true;
  readonly sql: string;
  readonly kind: ColumnKind;
  readonly draw: () => Cell;
}

export type RandomColumns = Readonly<Record<string, RandomColumn>>;

/** Columns of all types, whose values repeat and have the ends of their ranges. */
export function randomColumns(random: () => number): RandomColumns {
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];
  const whole = (bound: number) => Math.floor((random() * 2 - 1) * bound);
  const fraction = () =>
    pick([0, -0.5, 0.1, 2.5, 1e10, Number.NaN, Infinity, -Infinity, whole(100) / 8, random()]);
  const made = (
    kind: RandomColumn['kind'],
    type: ValueType,
    sql: string,
    draw: () => Cell,
  ): RandomColumn => ({
    kind,
    type,
    sql,
    draw,
  });
  return {
    b: made('bool', 'bool', 'BOOLEAN', () => random() < 0.5),
    c: made('bool', 'bool', 'BOOLEAN', () => random() < 0.8),
    i: made('int', 'int32', 'INTEGER', () => whole(12)),
    j: made('int', 'int64', 'BIGINT', () => whole(1000)),
    f: made('float32', 'float32', 'FLOAT', () => Math.fround(pick([fraction(), 3.3]))),
    g: made('float32', 'float32', 'FLOAT', () => whole(40) / 8),
    d: made('float64', 'float64', 'DOUBLE', fraction),
    e: made('float64', 'float64', 'DOUBLE', () => whole(40) / 8),
    dm: made('decimal', 'decimal(9,2)', 'DECIMAL(9,2)', () =>
      pick(['0', '-0.05', '12.34', '99999.99', (whole(3000) / 100).toFixed(2)]),
    ),
    dn: made('decimal', 'decimal(4,1)', 'DECIMAL(4,1)', () => (whole(60) / 10).toFixed(1)),
    dw: made('decimal', 'decimal(30,6)', 'DECIMAL(30,6)', () =>
      pick(['9999999999999.123456', '-9007199254.740993', '5', (whole(3000) / 1000).toFixed(6)]),
    ),
    t: made('text', 'utf8', 'VARCHAR', () =>
      pick(['a', 'abc', '', 'Été', ' x ', '12', '-7', '😀z', 'A%', '99999999999999999999']),
    ),
    s: made('text', 'utf8', 'VARCHAR', () => pick(['a', 'b', '1', '', 'é'])),
    da: made('date', 'date', 'DATE', () => whole(30_000)),
    db: made('date', 'date', 'DATE', () => 19_782 + whole(3)),
    ts: made('timestamp', 'timestamp', 'TIMESTAMP', () => BigInt(whole(30_000) * DAY + whole(DAY))),
    tt: made('timestamp', 'timestamp', 'TIMESTAMP', () => BigInt((19_782 + whole(3)) * DAY)),
    big: made('wide', 'int64', 'BIGINT', () =>
      pick([2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, 5n, BigInt(whole(2 ** 52)) * 1000n]),
    ),
    huge: made('wide', 'uint64', 'UBIGINT', () => pick([2n ** 64n - 1n, 2n ** 53n + 1n, 2n ** 63n, 5n, 0n])),
  };
}

/** Columns of UUIDs and of times with a zone, half of them near a change of clocks. */
export function furtherColumns(random: () => number): RandomColumns {
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];
  const halfHours = () => BigInt(pick([19_792, 20_030]) * DAY + Math.floor(random() * 48) * (DAY / 48));
  const time = { kind: 'zoned', type: `timestamp(${ZONE})`, sql: 'TIMESTAMPTZ' } as const;
  const ids = ['0', '7', 'a', 'f'].map((digit) => `0190a1b2-c3d4-7e5f-8a${digit}b-0123456789ab`);
  return {
    u: { kind: 'text', type: 'utf8', isUuid: true, sql: 'VARCHAR', draw: () => pick(ids) },
    z: { ...time, draw: halfHours },
    zz: { ...time, draw: () => pick([halfHours(), BigInt(Math.floor((random() - 0.5) * 40_000) * DAY)]) },
    dst: { kind: 'timestamp', type: 'timestamp', sql: 'TIMESTAMP', draw: halfHours },
  };
}

/** Names of columns by kind; also small integers are compared with wide ones. */
export function namesByKind(columns: Readonly<Record<string, ColumnKind>>): Columns {
  const of = (kind: ColumnKind) => Object.keys(columns).filter((name) => columns[name] === kind);
  return {
    bool: of('bool'),
    int: of('int'),
    float32: of('float32'),
    float64: of('float64'),
    decimal: of('decimal'),
    text: of('text'),
    date: of('date'),
    timestamp: of('timestamp'),
    wide: of('wide'),
    zoned: of('zoned'),
    list: of('list'),
  };
}

/** Cells by column, with a share of nulls. */
export type Cells = Readonly<Record<string, readonly Cell[]>>;

export function drawCells(columns: RandomColumns, rows: number, isNull: () => boolean): Cells {
  return Object.fromEntries(
    Object.entries(columns).map(([name, { draw }]) => [
      name,
      Array.from({ length: rows }, () => (isNull() ? null : draw())),
    ]),
  );
}

export function batchOfCells(columns: RandomColumns, cells: Cells): RecordBatch {
  return batchOf(
    Object.fromEntries(
      Object.entries(columns).map(([name, { type, isUuid }]) => [
        name,
        isUuid ? uuidColumn(cells[name]) : column(type, cells[name]),
      ]),
    ),
  );
}

function uuidColumn(cells: readonly Cell[]): Data {
  const type = new FixedSizeBinary(16);
  const bytes = cells.map((cell) => Buffer.from(String(cell ?? '0'.repeat(32)).replaceAll('-', ''), 'hex'));
  const { nullCount, nullBitmap } = column('utf8', cells);
  return makeData({ type, length: cells.length, nullCount, nullBitmap, data: Buffer.concat(bytes) });
}

/** Statements that create the table in DuckDB, with rows numbered by `order`. */
export function duckTable(table: string, columns: RandomColumns, cells: Cells, order: string): string[] {
  const types = Object.entries(columns).map(([name, { sql }]) => `"${name}" ${sql}`);
  const rows = Object.values(cells)[0].length;
  const values = Array.from({ length: rows }, (_, row) => {
    const own = Object.entries(columns).map(([name, { type }]) => sqlOf(cells[name][row], type));
    return `(${row}, ${own.join(', ')})`;
  });
  return [
    `CREATE OR REPLACE TABLE ${table} ("${order}" BIGINT, ${types.join(', ')})`,
    ...(rows > 0 ? [`INSERT INTO ${table} VALUES ${values.join(', ')}`] : []),
  ];
}

function sqlOf(cell: Cell, type: ValueType): string {
  if (cell === null) return 'NULL';
  if (type === 'date') return `DATE '${dateText(Number(cell))}'`;
  if (isTimestamp(type)) {
    const days = Math.floor(Number(BigInt(cell) / 1000n) / (DAY / 1000));
    const text = timestampText(days, Number(BigInt(cell) - BigInt(days) * BigInt(DAY)));
    return type === 'timestamp' ? `TIMESTAMP '${text}'` : `TIMESTAMPTZ '${text}+00'`;
  }
  if (typeof cell === 'string') return `'${cell}'`;
  // In quotes: a decimal literal would be rounded on its way to FLOAT.
  return typeof cell === 'number' ? `'${cell}'` : String(cell);
}

/** DuckDB's value of a kind in a form that its JavaScript gives exactly. */
export function exactly(kind: ColumnKind, text: string): string {
  if (kind === 'int') return `(${text})::BIGINT`;
  // Cells of decimals have their type; DuckDB writes no 0 before the point of DECIMAL(2,2).
  if (kind === 'decimal')
    return `regexp_replace((${text})::VARCHAR, '^(-?)\\.', '\\10.') || replace(' ' || typeof(${text}), 'DECIMAL', '')`;
  if (kind === 'date') return `(${text})::DATE - DATE '1970-01-01'`;
  if (kind === 'zoned') return `epoch_us((${text})::TIMESTAMPTZ)`;
  if (kind === 'list') return `to_json(${text})::VARCHAR`;
  return kind === 'timestamp' ? `epoch_us((${text})::TIMESTAMP)` : text;
}

export function plainCell(cell: unknown, kind: ColumnKind): unknown {
  if (cell === null) return null;
  if (['int', 'date', 'timestamp', 'wide', 'zoned'].includes(kind)) return BigInt(cell as bigint);
  if (kind === 'list')
    return typeof cell === 'string' ? cell : JSON.stringify([...(cell as Iterable<unknown>)]);
  // 0 and -0 are equal, and float32 travels as the float64 of the same value.
  return typeof cell === 'number' ? cell + 0 : cell;
}
