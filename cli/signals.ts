import { endAtOnce, endIfStalled, isStuck } from '../api/end-process.ts';
import { CancelledError } from '../engine/errors.ts';

export interface Interruption {
  /** Fires at the first signal. */
  readonly signal: AbortSignal;
  /** Rejects if the run was asked to end, but waits for another program, which may take forever. */
  readonly stuck: Promise<never>;
  /** From now on SIGHUP calls the handler, and does not end the run. */
  handleHangup(handler: () => void): void;
  /** Restores the system's handling of signals. */
  close(): void;
}

const CANCELLED = 130;

/** Time between two checks of a run that was asked to end. */
const LOOK_MILLISECONDS = 50;

/**
 * Handles Ctrl-C, `kill` and a closed terminal. The first signal asks the run to end normally; the second
 * ends it at once and removes incomplete output. If the main thread is blocked and cannot handle the second
 * signal, the process ends five seconds after the first. `onFirst` and `onSecond` may inform the user and
 * restore the terminal.
 */
export function watchSignals(onFirst: () => void, onSecond: () => void): Interruption {
  const controller = new AbortController();
  let look: NodeJS.Timeout | undefined;
  let giveUp: (reason: Error) => void = () => {};
  const stuck = new Promise<never>((_, reject) => (giveUp = reject));
  stuck.catch(() => {});
  const watch = (beat: () => void) => {
    beat();
    if (isStuck()) giveUp(new CancelledError());
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  let onHangup: (() => void) | undefined;
  const handle = (name: NodeJS.Signals) => {
    if (name === 'SIGHUP' && onHangup !== undefined && !controller.signal.aborted) {
      onHangup();
      return;
    }
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
  const handleHangup = (handler: () => void) => void (onHangup = handler);
  return { signal: controller.signal, stuck, handleHangup, close };
}
