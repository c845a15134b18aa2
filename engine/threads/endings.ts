/**
 * What must be over before the process ends: a thread inside a graphics driver cannot be stopped from outside, and a process
 * that tries dies of it, loudly and with another exit code.
 */
const endings = new Set<() => Promise<void>>();

/** `end` hurries whatever it is to its end. Gives what to call once it has ended. */
export function mustEndFirst(end: () => Promise<void>): () => void {
  endings.add(end);
  return () => void endings.delete(end);
}

/** Ends everything that must, for so long at most. Tells whether it is over. */
export async function endFirst(milliseconds: number): Promise<boolean> {
  if (endings.size === 0) return true;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([Promise.allSettled(Array.from(endings, (end) => end())), late]);
  clearTimeout(timer);
  return endings.size === 0;
}
