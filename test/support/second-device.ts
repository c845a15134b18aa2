import { CpuDevice } from '../../cpu/device.ts';
import type { Device } from '../../engine/executor.ts';
import type { Task } from '../../engine/task.ts';

/** A device that looks like a GPU to the operators, but computes on CPU threads of its own and so gives the CPU's results. */
export function secondDevice(options: { /** Called before every task; may throw. */ readonly before?: (task: Task) => void } = {}): Device & { readonly ran: readonly Task[] } {
  const inner = new CpuDevice({ threads: 1 });
  const ran: Task[] = [];
  return {
    name: 'gpu',
    kind: 'gpu',
    parallelism: 1,
    inOrder: false,
    capacityBytes: inner.capacityBytes,
    strideStep: 8,
    description: 'a second CPU',
    ran,
    put: (ref, partition) => inner.put(ref, partition),
    allocate: (ref, shape) => void inner.allocate(ref, shape),
    run: async (task, signal) => {
      options.before?.(task);
      ran.push(task);
      if (task.kernel === 'upload') return { metrics: { rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 0 }, values: {} };
      return inner.run(task, signal);
    },
    fetch: (ref) => inner.fetch(ref),
    release: (ref) => inner.release(ref),
    choose: async (problem) => ({ variant: `for-${String(problem.rows)}-rows`, precision: 'f32', ratingScale: 1, reason: `of ${String(problem.longest)} ratings at most a row`, deviceBytes: 1000 }),
    trim: () => inner.trim(),
    close: () => inner.close(),
  };
}
