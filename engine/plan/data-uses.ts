import type { JsonObject } from '../json.ts';
import type { How } from '../run/step.ts';
import type { DataSet, DataUse, Stage } from './stages.ts';

/**
 * One visit of a stage: to one block of the grid, or to one part if the stage has no grid. `fields`: values
 * that its tasks may take as parameters.
 */
export interface Visit {
  readonly row: number;
  readonly column?: number;
  /** Columns of the grid. */
  readonly columns?: number;
  readonly fields: JsonObject;
}

/**
 * Finds the part of a data set that a visit uses. If the data set has only one part, also returns the band of
 * its rows that belongs to the visited row or column of the grid.
 */
export function partOf(
  { name, by, parts, ofBlocks }: DataSet,
  { row, column, columns = 0 }: Visit,
): { readonly partition: number; readonly band?: number } {
  if (column !== undefined && by === 'block')
    return { partition: ofBlocks?.[row * columns + column] ?? row * columns + column };
  const wanted = column !== undefined && by === 'column' ? column : row;
  if (parts.length > 1) {
    if (wanted >= parts.length) throw new Error(`${name} has no part ${wanted}`);
    return { partition: wanted };
  }
  return column === undefined || by === undefined ? { partition: 0 } : { partition: 0, band: wanted };
}

/** The part of a data set for a block's column. */
export function columnPart({ parts }: DataSet, { column = 0 }: Visit): number {
  return parts.length > 1 ? column : 0;
}

/** The way a task uses a data set; default: as in its kernel's contract. */
export function howOf({ version, step, part }: DataUse, contract: How): How {
  return step ?? (version === undefined && part === undefined ? contract : 'read');
}

export function useOf(use: string | DataUse): DataUse {
  return typeof use === 'string' ? { set: use } : use;
}

/** True if a stage reads a data set's version from before the round. */
export function usesOld({ work }: Stage, data: string): boolean {
  return (
    (work.kind === 'tasks' || work.kind === 'blocks') &&
    work.tasks.some(({ uses }) =>
      Object.values(uses)
        .map(useOf)
        .some(({ set, version }) => set === data && version === 'old'),
    )
  );
}
