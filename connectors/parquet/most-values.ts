import { DataType, type Schema } from 'apache-arrow';
import type { ParquetFileInfo } from './backend.ts';

/** Largest number of distinct values, including null, that each integer column can have by its statistics. */
export function mostValues(files: readonly ParquetFileInfo[], { fields }: Schema): Record<string, number> {
  const most: Record<string, number> = {};
  for (const { name, type } of fields) {
    if (!DataType.isInt(type)) continue;
    let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const { columns } of files.flatMap(({ rowGroups }) => rowGroups)) {
      const own = columns.find(({ column }) => column === name)?.statistics;
      // Without statistics of a row group the bound is NaN, and no number is returned for the column.
      least = Math.min(least, Number(own?.min ?? Number.NaN));
      greatest = Math.max(greatest, Number(own?.max ?? Number.NaN));
    }
    if (greatest >= least) most[name] = greatest - least + 2;
  }
  return most;
}
