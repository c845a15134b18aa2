import { CpuDevice } from '../../cpu/device.ts';
import type { Executor } from '../../engine/run/device.ts';
import { planDevices } from '../../engine/run/devices.ts';
import { LocalExecutor } from '../../engine/run/local-executor.ts';
import { isRepeatable } from './repeatable.ts';
import { requireLimits } from './system-limits.ts';

/** A request takes a thread for less than a millisecond, so a few threads serve thousands per second. */
const MOST_THREADS = 4;

/**
 * Opens a CPU device for requests for single rows, in addition to the session's devices. It has at most the
 * number of threads of the session's CPU. Throws CapacityError if system limits leave too few open files or
 * too little address space.
 */
export function openRequests(executor: Executor): Executor {
  const { parallelism } = planDevices(executor).host;
  const threads = Math.min(MOST_THREADS, parallelism);
  requireLimits(threads);
  return new LocalExecutor([new CpuDevice({ threads, collectsHere: false, repeatable: isRepeatable })]);
}
