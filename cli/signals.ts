import { endAtOnce, endIfStalled, isStuck } from '../api/end-process.ts';
import { CancelledError } from '../engine/errors.ts';

export interface Interruption {
  /** Fires at the first signal. */
  readonly signal: AbortSignal;
  /** Rejects when the run was asked to end, and still waits for another program, which may last for ever. */
  readonly stuck: Promise<never>;
  /** Gives the signals back to the system. */
  close(): void;
}

const CANCELLED = 130;

/** Time between looks at a run that was asked to end. */
const LOOK_MILLISECONDS = 50;

/**
 * Listens to Ctrl-C, `kill` and a closed terminal. The first signal asks the run to end in order, the second
 * ends it at once and removes unfinished output. A main thread that has no turn to hear the second ends five
 * seconds after the first. `onFirst` and `onSecond` may tell the user and restore the
 * terminal.
 */
export function watchSignals(onFirst: () => void, onSecond: () => void): Interruption {
  const controller = new AbortController();
  let look: NodeJS.Timeout | undefined;
  let giveUp: (reason: Error) => void = () => {};
  const stuck = new Promise<never>((_, reject) => (giveUp = reject));
  stuck.catch(() => {});
  const watch = (beat: () => void) => {
    beat();
    if (isStuck()) giveUp(new CancelledError({ phase: 'read' }));
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const handle = () => {
    if (!controller.signal.aborted) {
      onFirst();
      controller.abort();
      look = setInterval(watch, LOOK_MILLISECONDS, endIfStalled());
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
