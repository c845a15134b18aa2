import { CpuDevice } from '../../cpu/device.ts';
import type { Executor } from '../../engine/run/device.ts';
import { planDevices } from '../../engine/run/devices.ts';
import { LocalExecutor } from '../../engine/run/local-executor.ts';
import { isRepeatable } from './repeatable.ts';
import { requireLimits } from './system-limits.ts';

/** A request takes a thread for less than a millisecond, so a few serve thousands a second. */
const MOST_THREADS = 4;

/**
 * The device of requests for single rows, beside those of a session: at most as many threads as the session's
 * CPU has. Throws CapacityError where limits of the system leave too few open files or addresses.
 */
export function openRequests(executor: Executor): Executor {
  const { parallelism } = planDevices(executor).host;
  const threads = Math.min(MOST_THREADS, parallelism);
  requireLimits(threads);
  return new LocalExecutor([new CpuDevice({ threads, collectsHere: false, repeatable: isRepeatable })]);
}
