/** Entry of a thread of a page that trains: runs tasks on the memory that it shares with the page. */
// oxlint-disable-next-line import/no-unassigned-import -- Must run before the modules below.
import './dispose-symbols.ts';
import { handlers } from '../cpu/generated/tasks.ts';
import type { TaskScope } from '../cpu/handler.ts';
import { loadKernels } from '../cpu/kernels.ts';
import { scopeOf } from '../cpu/task-scope.ts';
import { serializeError } from '../engine/errors.ts';
import type { TaskOutcome } from '../engine/task.ts';
import type { ThreadMessage, ThreadAnswer } from './page-threads.ts';

/** The worker's global object, with the types of its messages. */
const page = globalThis as unknown as {
  addEventListener: (type: 'message', listener: (event: { readonly data: ThreadMessage }) => void) => void;
  /** `transferred`: objects that move to the page and are not copied. */
  postMessage: (answer: ThreadAnswer, transferred: readonly []) => void;
};
const byName: Readonly<Record<string, (scope: TaskScope<never>) => TaskOutcome>> = handlers;

let shared: (Pick<TaskScope, 'memory' | 'kernels'> & { readonly flags: Int32Array }) | undefined;

page.addEventListener('message', ({ data }) => {
  try {
    if ('compiled' in data) {
      const { memory, compiled, flags } = data;
      shared = { memory, kernels: loadKernels(memory, compiled), flags };
      return page.postMessage('ready', []);
    }
    if (shared === undefined) throw new Error('a thread got a task before its memory');
    const { request, slot } = data;
    const { memory, kernels, flags } = shared;
    const scope = scopeOf(request, { memory, kernels, cancelled: () => Atomics.load(flags, slot) !== 0 });
    page.postMessage({ outcome: byName[request.kernel](scope as TaskScope<never>) }, []);
  } catch (error) {
    page.postMessage({ error: serializeError(error) }, []);
  }
});
