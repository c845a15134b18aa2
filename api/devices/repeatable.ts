import { encodeContracts } from '../../connectors/output/encode-rows.ts';
import type { TaskContracts } from '../../engine/run/step.ts';
import { contracts } from '../../operators/tasks/tasks.ts';

const all: TaskContracts = { ...contracts, ...encodeContracts };

/**
 * True for tasks that leave their inputs as they are and write their outputs whole: after half of the work
 * they can be run again.
 */
export function isRepeatable(kernel: string): boolean {
  return (
    Object.hasOwn(all, kernel) && Object.values(all[kernel]).every((how) => how === 'read' || how === 'write')
  );
}
