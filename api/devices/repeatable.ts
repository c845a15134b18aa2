import { encodeContracts } from '../../connectors/output/encode-rows.ts';
import type { TaskContracts } from '../../engine/run/step.ts';
import { contracts } from '../../operators/tasks/tasks.ts';

const all: TaskContracts = { ...contracts, ...encodeContracts };

/**
 * True for tasks that only read their inputs and write their outputs completely, so that an interrupted task
 * can run again.
 */
export function isRepeatable(kernel: string): boolean {
  return (
    Object.hasOwn(all, kernel) && Object.values(all[kernel]).every((how) => how === 'read' || how === 'write')
  );
}
