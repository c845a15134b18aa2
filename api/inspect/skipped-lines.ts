import { counted } from '../../engine/format.ts';
import {
  type LogicalPlan,
  operatorsOf,
  rootSource,
  sourceRequest,
} from '../../engine/stream/logical-plan.ts';
import type { SourceParts } from '../../engine/stream/operator.ts';
import { Filter } from '../../operators/dataflow/filter.ts';

/**
 * For a plan with a filter: lines that report the number of parts of the source (folders, row groups, pages)
 * that must be read, or the reason why all must be.
 */
export async function skippedLines(plan: LogicalPlan): Promise<string[]> {
  const source = rootSource(plan);
  const operators = operatorsOf(plan);
  const filter = operators.findIndex((operator) => operator instanceof Filter);
  const parts = filter < 0 ? undefined : await source.parts?.(sourceRequest(plan).columns);
  if (parts === undefined) return [];
  const folders = parts.filter(({ by }) => by === 'names').map(folderLine);
  const stored = parts.filter(({ by }) => by === 'statistics');
  if (stored.length === 0) return folders;
  const before = filter > 0 ? operators[filter - 1].name : undefined;
  return [...folders, statisticsLine(stored, before, 'within' in source.describe())];
}

function folderLine({ unit, read, all }: SourceParts): string {
  return read < all
    ? `reads ${read} of ${counted(all, unit)}: names exclude the others`
    : `reads ${all === 1 ? `the only ${unit}` : `all ${counted(all, unit)}`}: names exclude none`;
}

/**
 * The line about row groups and pages. `before`: the operator before the filter, if any, which prevents
 * skipping; `isBound`: true if the filter limits single columns to ranges.
 */
function statisticsLine(parts: readonly SourceParts[], before: string | undefined, isBound: boolean): string {
  if (parts.some(({ read, all }) => read < all)) {
    const read = parts.map(({ unit, read, all }) => `${read} of ${counted(all, unit)}`).join(', ');
    return `reads ${read}: statistics in the file exclude the others`;
  }
  const [{ unit, all }] = parts;
  const reason =
    before !== undefined
      ? `the filter runs after ${before}`
      : isBound
        ? 'statistics in the file exclude none'
        : 'the filter compares no single column with constants';
  return `reads ${all === 1 ? `the only ${unit}` : `all ${counted(all, unit)}`}: ${reason}`;
}
