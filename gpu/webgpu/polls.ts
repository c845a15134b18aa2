/**
 * Paces Dawn's polling. While a promise of the GPU is pending, Dawn's binding polls for events in every turn
 * of the event loop, up to 130,000 times a second, which occupies a core and produces garbage that V8
 * collects in pauses of tens of milliseconds. Each poll is a new native function passed to the thread's
 * global setImmediate, the only place where it can be delayed.
 */

/**
 * Milliseconds between two polls. `card`: a graphics card, whose work takes milliseconds. `software`: a
 * driver that computes on the processor and whose threads need the core.
 */
const PAUSES = { card: 0.05, software: 1 } as const;

/** Polls pause by waiting for this number to change (Atomics.wait); it never does. */
let quiet: Int32Array;

/** Undefined in a page, whose browser needs no polling. */
const unpaced = globalThis.setImmediate as typeof setImmediate | undefined;

let pause = 0;
let urgent = 0;
let paced = false;

/**
 * Delays each poll of this thread, which must be a GPU's own thread: its code does not use the global
 * setImmediate for other purposes.
 */
export function pacePolls(software: boolean): void {
  pause = software ? PAUSES.software : PAUSES.card;
  if (paced) return;
  paced = true;
  quiet = new Int32Array(new SharedArrayBuffer(4));
  globalThis.setImmediate = new Proxy(setImmediate, {
    apply: (target, self, [poll, ...given]: [() => void, ...unknown[]]) =>
      Reflect.apply(target, self, [pacedPoll(poll), ...given]) as NodeJS.Immediate,
  });
}

/**
 * The next turn of the event loop; a poll in that turn does not pause. Resolves at once in a page: its GPU
 * has no thread of its own, from which answers would have to be sent.
 */
export function nextTurn(): Promise<void> {
  hurryPolls();
  return unpaced === undefined ? Promise.resolve() : new Promise((resolve) => unpaced(resolve));
}

/** The next turn of the event loop, after the pause of a poll. */
export function pacedTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Makes the next polls skip their pause, because an answer is expected at once. */
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
