/**
 * Work that must end before the process exits: a thread inside a graphics driver cannot be stopped from
 * outside, and a process that exits anyway crashes with another exit code.
 */
const endings = new Set<() => Promise<void>>();

/** Registers work; `end` makes it end soon. Returns the function to call once it has ended. */
export function mustEndFirst(end: () => Promise<void>): () => void {
  endings.add(end);
  return () => void endings.delete(end);
}

/** Ends all registered work, and waits for at most the given time. Returns true if all of it has ended. */
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
