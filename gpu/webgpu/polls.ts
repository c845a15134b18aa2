/**
 * Milliseconds between two polls of a graphics card, whose work takes milliseconds, and of a driver that
 * computes on the processor, whose threads want it.
 */
const PAUSES = { card: 0.05, software: 1 } as const;

/** Polls wait on it for their pause: nothing notifies it. */
const quiet = new Int32Array(new SharedArrayBuffer(4));

let pause = 0;
let urgent = 0;
let paced = false;

/**
 * Paces this thread's polls. While a promise of the GPU is open, Dawn's binding asks for events in every turn
 * of the event loop, each time by a new native function: up to 130,000 times a second, which occupies a core,
 * and whose garbage V8 collects in pauses of tens of milliseconds. A poll waits for a moment first; what else
 * the thread has to do comes before it.
 *
 */
export function pacePolls(software: boolean): void {
  pause = software ? PAUSES.software : PAUSES.card;
  if (paced) return;
  paced = true;
  globalThis.setImmediate = new Proxy(setImmediate, {
    apply: (target, self, given: unknown[]) =>
      Reflect.apply(target, self, isPoll(given) ? [pacedPoll(given[0])] : given) as NodeJS.Immediate,
  });
}

/** The next polls do not wait: an answer is expected at once. */
export function hurryPolls(polls = 1): void {
  urgent = Math.max(urgent, polls);
}

function pacedPoll(poll: () => void): () => void {
  return () => {
    if (urgent > 0) urgent--;
    else Atomics.wait(quiet, 0, 0, pause);
    poll();
  };
}

/**
 * True for what Dawn's binding passes: a native function without name and parameters, and nothing else. Bound
 * functions are native too, and have names; those that resolve a promise have a parameter.
 */
function isPoll(given: unknown[]): given is [() => void] {
  const [callback] = given;
  return (
    given.length === 1 &&
    typeof callback === 'function' &&
    callback.length === 0 &&
    callback.name === '' &&
    Function.prototype.toString.call(callback).endsWith('{ [native code] }')
  );
}
