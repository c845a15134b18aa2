import { removeTemporaries } from '../connectors/output/temporaries.ts';
import { CancelledError } from '../engine/errors.ts';
import { endFirst } from '../engine/threads/endings.ts';
import { longestWait } from '../engine/waits.ts';

export interface Interruption {
  /** Fires at the first signal. */
  readonly signal: AbortSignal;
  /** Rejects when the run was asked to end, and still waits for another program, which may last for ever. */
  readonly stuck: Promise<never>;
  /** Gives the signals back to the system. */
  close(): void;
}

const CANCELLED = 130;

/** Time for file operations that the system's threads have begun, such as making a folder. */
const DRAIN_MILLISECONDS = 20;

/** Time for a GPU to end its work, unless it hangs. */
const GPU_MILLISECONDS = 2000;

/** Time between looks at a run that was asked to end, and least time of a wait that is given up. */
const LOOK_MILLISECONDS = 50;
const PATIENCE_MILLISECONDS = 200;

/**
 * Ends the process in the middle of its work. Removes unfinished output, and gives a GPU's thread a moment to
 * end.
 */
export async function endAtOnce(exitCode: number): Promise<never> {
  removeTemporaries();
  const over = await endFirst(GPU_MILLISECONDS);
  removeTemporaries();
  // This thread is blocked, so no new work begins; output of a file operation that ends meanwhile is removed
  // below.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DRAIN_MILLISECONDS);
  removeTemporaries();
  if (!over) process.kill(process.pid, 'SIGKILL');
  process.exit(exitCode);
}

/**
 * Listens to Ctrl-C, `kill` and a closed terminal. The first signal asks the run to end in order, the second
 * ends it at once and removes unfinished output. `onFirst` and `onSecond` may tell the user and restore the
 * terminal.
 *
 */
export function watchSignals(onFirst: () => void, onSecond: () => void): Interruption {
  const controller = new AbortController();
  let look: NodeJS.Timeout | undefined;
  let giveUp: (reason: Error) => void = () => {};
  const stuck = new Promise<never>((_, reject) => (giveUp = reject));
  stuck.catch(() => {});
  const watch = () => {
    if (longestWait() >= PATIENCE_MILLISECONDS) giveUp(new CancelledError({ phase: 'read' }));
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const handle = () => {
    if (!controller.signal.aborted) {
      onFirst();
      controller.abort();
      look = setInterval(watch, LOOK_MILLISECONDS);
      return;
    }
    onSecond();
    void endAtOnce(CANCELLED);
  };
  for (const name of names) process.on(name, handle);
  const close = () => {
    clearInterval(look);
    for (const name of names) process.off(name, handle);
  };
  return { signal: controller.signal, stuck, close };
}
