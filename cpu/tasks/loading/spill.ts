import { partitionBytes } from '../../../engine/partition.ts';
import { writeSpilled } from '../../spilled-partition.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `spill` of CpuTasks. */
export const spill: TaskHandler<'spill'> = (scope) => {
  const partitions = Array.from({ length: scope.params.parts }, (_, part) => scope.partition(`part.${part}`));
  const spilled = writeSpilled(scope.params.file, partitions);
  return {
    rows: partitions.reduce((sum, { rows }) => sum + rows, 0),
    bytesDown: partitions.reduce((sum, partition) => sum + partitionBytes(partition), 0),
    values: { spilled },
  };
};
