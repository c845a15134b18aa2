import { removeTemporaries } from '../connectors/output/temporaries.ts';
import { endFirst } from '../engine/endings.ts';

export interface Interruption {
  /** Fires at the first signal. */
  readonly signal: AbortSignal;
  /** Back to the system's own ways. */
  close(): void;
}

const CANCELLED = 130;

/** What the system's threads may still be doing for us, such as making a folder, is over by then. */
const DRAIN_MILLISECONDS = 20;

/** What a GPU is doing is over by then, unless it hangs. */
const GPU_MILLISECONDS = 2000;

/** Ends the process with nothing half-written left, whatever is under way; a GPU's thread has a moment to come to its end. */
export async function endAtOnce(exitCode: number): Promise<never> {
  removeTemporaries();
  const over = await endFirst(GPU_MILLISECONDS);
  removeTemporaries();
  // No JavaScript of this thread runs meanwhile, so nothing new begins; what a file operation brought back goes as well.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DRAIN_MILLISECONDS);
  removeTemporaries();
  if (!over) process.kill(process.pid, 'SIGKILL');
  process.exit(exitCode);
}

/**
 * Ctrl-C, `kill` and a closed terminal: the first asks the run to end in order, the second ends it at once, with
 * unfinished output removed. `onFirst` and `onSecond` may tell the user and restore the terminal.
 */
export function watchSignals(onFirst: () => void, onSecond: () => void): Interruption {
  const controller = new AbortController();
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const handle = () => {
    if (!controller.signal.aborted) {
      onFirst();
      controller.abort();
      return;
    }
    onSecond();
    void endAtOnce(CANCELLED);
  };
  for (const name of names) process.on(name, handle);
  const close = () => {
    for (const name of names) process.off(name, handle);
  };
  return { signal: controller.signal, close };
}
