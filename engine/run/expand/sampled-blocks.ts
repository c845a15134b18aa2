import { type BoundPlan, dataSetOf } from '../../plan/bound-plan.ts';
import type { GridBlock } from '../../plan/grid-order.ts';
import type { Place } from '../../plan/place.ts';
import { columnPart, partOf, useOf, type BlockGrid, type Stage, type Work } from '../../plan/stages.ts';

/** Most columns that are visited in each row. */
const SAMPLED_COLUMNS = 64;

/**
 * Of adjacent rows (or columns) of the same size and place, only this number is visited at each end. A place
 * holds the copies of two visits at a time, so its memory repeats from the third visit on.
 */
const ENDS = 3;

/**
 * Largest differences between parts that count as equal: a side is cut into parts whose rows differ by one.
 */
const EQUAL = { rows: 1, bytes: 8 };

/**
 * The rows of a grid that are visited to compute memory, and the columns that are visited in each of them.
 */
export interface SampledBlocks {
  readonly rows: ReadonlySet<number>;
  readonly columns: readonly number[];
}

type Blocks = Extract<Work, { readonly kind: 'blocks' }>;

/** Places and sizes of the parts that the first and the last block of a row, or of a column, use. */
interface Line {
  readonly places: string;
  readonly rows: readonly number[];
  readonly bytes: readonly number[];
}

/**
 * Selects the blocks that a stage with the order `rows` visits in an expansion that only computes memory:
 * all whose rows or columns differ from their neighbours in size or place, and a few of the others. The
 * memory that a row leaves allocated after it is the same for equal rows, so the peak of equal rows is at
 * their first or their last one. Stages of a pipeline visit the same blocks, since they use each other's
 * copies.
 */
export function sampleOf(bound: BoundPlan, stage: Stage): SampledBlocks {
  const { grid } = stage.work as Blocks;
  const allRows = Array.from({ length: grid.rows }, (_, row) => row);
  const step = Math.ceil(grid.columns / SAMPLED_COLUMNS);
  const spaced = Array.from({ length: Math.ceil(grid.columns / step) }, (_, k) => k * step);
  // Real blocks differ in size.
  if (bound.blockSizes !== undefined) return { rows: new Set(allRows), columns: spaced };
  const together = stage.pipeline === undefined ? [stage] : stagesOf(bound, stage.pipeline);
  const uses = together.flatMap(({ work }) =>
    work.kind === 'blocks' && work.grid.rows === grid.rows
      ? work.tasks.flatMap((task) => Object.values(task.uses).map(useOf))
      : [],
  );
  const sets = new Map(uses.map(({ set, part }) => [`${set} ${part}`, { set: dataSetOf(bound, set), part }]));
  const lineOf = (...blocks: readonly GridBlock[]): Line => {
    const parts = blocks.flatMap((block) => {
      const visit = { ...block, columns: grid.columns, fields: {} };
      return Array.from(
        sets.values(),
        ({ set, part }) =>
          set.parts[part === 'column' ? columnPart(set, visit) : partOf(set, visit).partition],
      );
    });
    const places = [...blocks.map((block) => placeOfBlock(stage, grid, block)), ...parts.map(({ at }) => at)];
    return {
      places: places.join(' '),
      rows: parts.map(({ rows }) => rows),
      bytes: parts.map(({ bytes = 0 }) => bytes),
    };
  };
  const [lastRow, lastColumn] = [grid.rows - 1, grid.columns - 1];
  // The places of a row in stages that have one for each row, such as the owner of the row's sums.
  const owners = together.flatMap(({ at }) => (at.length === grid.rows ? [at] : []));
  const rows = allRows.map((row): Line => {
    const line = lineOf({ row, column: 0 }, { row, column: lastColumn });
    return { ...line, places: `${line.places} ${owners.map((at) => at[row]).join(' ')}` };
  });
  const columns = spaced.map((column) => lineOf({ row: 0, column }, { row: lastRow, column }));
  const visited = endsOfRuns(columns);
  return { rows: endsOfRuns(rows), columns: spaced.filter((_, k) => visited.has(k)) };
}

function stagesOf({ phases }: BoundPlan, pipeline: string): Stage[] {
  return Object.values(phases)
    .flat()
    .filter((stage) => stage.pipeline === pipeline);
}

/**
 * The lines to visit: of each run of equal lines, ENDS at both ends, and the ENDS adjacent lines with the
 * most rows.
 */
function endsOfRuns(lines: readonly Line[]): Set<number> {
  const visited = new Set<number>();
  const visit = (from: number, to: number) => {
    for (let line = from; line < to; line++) visited.add(line);
  };
  for (let from = 0; from < lines.length;) {
    const end = lines.findIndex((line, k) => k > from && !areEqual(line, lines[from]));
    const to = end < 0 ? lines.length : end;
    let largest = from;
    const rowsTo = (line: number) => rowsOf(lines.slice(Math.max(from, line - ENDS), line));
    for (let line = from; line <= to; line++) if (rowsTo(line) >= rowsTo(largest)) largest = line;
    visit(from, Math.min(from + ENDS, to));
    for (const last of [largest, to]) visit(Math.max(from, last - ENDS), last);
    from = to;
  }
  return visited;
}

function areEqual(line: Line, other: Line): boolean {
  return (
    line.places === other.places &&
    line.rows.every((rows, k) => Math.abs(rows - other.rows[k]) <= EQUAL.rows) &&
    line.bytes.every((bytes, k) => Math.abs(bytes - other.bytes[k]) <= EQUAL.bytes)
  );
}

function rowsOf(lines: readonly Line[]): number {
  return lines.reduce((all, { rows }) => rows.reduce((sum, count) => sum + count, all), 0);
}

/**
 * The place at which a block is visited: its own place if the stage lists one for each block, else the place
 * of its row.
 */
export function placeOfBlock({ at }: Stage, { rows, columns }: BlockGrid, { row, column }: GridBlock): Place {
  return (at.length > rows ? at[row * columns + column] : at[row]) ?? at[0];
}
