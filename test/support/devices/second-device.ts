import { SOFTWARE_MARK } from '../../../engine/plan/device-info.ts';
import { CpuDevice } from '../../../cpu/device.ts';
import type { Device } from '../../../engine/run/device.ts';
import type { KernelChoice, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import type { Task } from '../../../engine/task.ts';

/**
 * A device that looks like a GPU to the operators, but computes on CPU threads of its own and so gives the
 * CPU's results.
 */
export function secondDevice({
  before,
  place = 'gpu:0',
}: {
  /** Called before every task; may throw. */ readonly before?: (task: Task) => void;
  readonly place?: string;
} = {}): Device & { readonly ran: readonly Task[] } {
  const inner = new CpuDevice({ threads: 1 });
  const ran: Task[] = [];
  return {
    info: {
      ...inner.info,
      place,
      kind: 'gpu',
      wholePasses: true,
      ownMemory: true,
      choosesKernels: true,
      description: `a second CPU; ${SOFTWARE_MARK}`,
    },
    ran,
    put: (ref, partition) => inner.put(ref, partition),
    allocate: (ref, shape) => inner.allocate(ref, shape),
    run: async (task, signal) => {
      before?.(task);
      ran.push(task);
      const metrics = { rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 0 };
      if (task.kernel === 'upload') return { metrics, values: {} };
      if (task.kernel === 'choose-update') return { metrics, values: choice(task.params as UpdateProblem) };
      if (task.kernel === 'tune-update') return { metrics, values: { tuning: null } };
      return inner.run(task, signal);
    },
    fetch: (ref) => inner.fetch(ref),
    release: (ref) => inner.release(ref),
    trim: () => inner.trim(),
    close: () => inner.close(),
  };
}

function choice({ rows, longest }: UpdateProblem): KernelChoice {
  return {
    variant: `for-${rows}-rows`,
    precision: 'f32',
    ratingScale: 1,
    reason: `of ${longest} ratings at most a row`,
    deviceBytes: 1000,
  };
}
