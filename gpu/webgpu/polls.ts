/**
 * While a promise of the GPU is open, Dawn's binding asks for events in every turn of the event loop, each
 * time by a new native function that it gives to the thread's global setImmediate, the only place to pace it:
 * up to 130,000 times a second, which occupies a core, and whose garbage V8 collects in pauses of tens of
 * milliseconds.
 */

/**
 * Milliseconds between two polls of a graphics card, whose work takes milliseconds, and of a driver that
 * computes on the processor, whose threads want it.
 */
const PAUSES = { card: 0.05, software: 1 } as const;

/** Polls wait on it for their pause: nothing notifies it. */
const quiet = new Int32Array(new SharedArrayBuffer(4));

const unpaced = setImmediate;

let pause = 0;
let urgent = 0;
let paced = false;

/**
 * Paces the polls of this thread, which is a GPU's own: a poll waits for a moment first. The thread's own
 * turns do not go by the global function.
 */
export function pacePolls(software: boolean): void {
  pause = software ? PAUSES.software : PAUSES.card;
  if (paced) return;
  paced = true;
  globalThis.setImmediate = new Proxy(setImmediate, {
    apply: (target, self, [poll, ...given]: [() => void, ...unknown[]]) =>
      Reflect.apply(target, self, [pacedPoll(poll), ...given]) as NodeJS.Immediate,
  });
}

/** The next turn of the event loop; the poll in it does not wait. */
export function nextTurn(): Promise<void> {
  hurryPolls();
  return new Promise((resolve) => unpaced(resolve));
}

/** The next polls do not wait: an answer is expected at once. */
export function hurryPolls(polls = 1): void {
  urgent = Math.max(urgent, polls);
}

function pacedPoll(poll: (...given: unknown[]) => void): (...given: unknown[]) => void {
  return (...given) => {
    if (urgent > 0) urgent--;
    else Atomics.wait(quiet, 0, 0, pause);
    poll(...given);
  };
}
