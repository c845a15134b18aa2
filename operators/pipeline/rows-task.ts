import type { PartitionRef } from '../../engine/partition.ts';
import type { ReadRowsParams } from '../tasks/reading-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';
import { portableOf } from './portable.ts';
import type { RowPart, RowUnit } from './row-unit.ts';
import type { RowsWork } from './rows-work.ts';
import type { SplitGroup } from './split-order.ts';

/** A task whose rows are larger returns none; the calling thread reads them, batch by batch. */
const MOST_ROW_BYTES = 64 << 20;

/** The rows of one task. */
export interface OneTask {
  readonly splits: SplitGroup;
  readonly unit?: RowUnit;
}

/** Makes one task of a work. `schema`: a partition with the columns of the input rows. */
export function rowsTask(
  { operators, others: ofAll = [] }: Pick<RowsWork, 'operators' | 'others'>,
  {
    taken: { splits, unit },
    schema,
    outputs,
  }: {
    readonly taken: OneTask;
    readonly schema: PartitionRef;
    readonly outputs: TaskOf<'read-rows'>['outputs'];
  },
  more: Partial<ReadRowsParams>,
): TaskOf<'read-rows'> {
  const parts = unit?.parts ?? [];
  const others = [...(unit?.others ?? []), ...ofAll];
  const refs = others.flatMap(({ columns, unit: other }) => [columns, ...refsOf(other.parts)]);
  return {
    kernel: 'read-rows',
    inputs: { schema, ...numbered('parts', refsOf(parts)), ...numbered('others', refs) },
    outputs,
    params: {
      splits,
      parts: piecesOf(parts),
      others: others.map(({ name, unit: other }) => ({
        parts: piecesOf(other.parts),
        ...(name && { name }),
      })),
      operators: portableOf(operators),
      takesFaults: false,
      maximumBytes: MOST_ROW_BYTES,
      ...more,
    },
  };
}

function refsOf(parts: readonly RowPart[]): PartitionRef[] {
  return parts.map(({ of }) => of.ref);
}

function piecesOf(parts: readonly RowPart[]): number[] {
  return parts.map(({ piece }) => piece);
}

function numbered<Name extends string>(
  name: Name,
  refs: readonly PartitionRef[],
): Record<`${Name}.${number}`, PartitionRef> {
  return Object.fromEntries(refs.map((ref, i) => [`${name}.${i}`, ref] as const)) as Record<
    `${Name}.${number}`,
    PartitionRef
  >;
}
