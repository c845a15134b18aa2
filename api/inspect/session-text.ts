import { formatBytes } from '../../engine/format.ts';
import { factLines } from './fact-lines.ts';

/** A session for console.log. */
export interface SessionFacts {
  readonly closed: boolean;
  /** undefined while a GPU is being opened. */
  readonly device: { readonly description: string; readonly reason?: string | undefined } | undefined;
  /** Threads of the CPU; undefined for a session without devices. */
  readonly workers: number | undefined;
  readonly memoryBudget: number;
  readonly bounded: boolean;
  readonly ids: string | undefined;
}

export function sessionText({ closed, device, workers, memoryBudget, bounded, ids }: SessionFacts): string {
  const reason = device?.reason === undefined ? '' : ` (${device.reason})`;
  return factLines('Session', {
    state: closed ? 'closed' : 'open',
    devices: device === undefined ? 'still being opened' : device.description + reason,
    workers: workers === undefined ? 'none' : String(workers),
    memory: `${formatBytes(memoryBudget)}${bounded ? '' : ', the memory of the machine'}`,
    ids: ids ?? 'numbers where all ids of a side are safe integers, else bigints',
  });
}
