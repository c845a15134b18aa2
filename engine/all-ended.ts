/** Waits until all have ended, in whichever way; then gives their results, or throws the first failure in the order given. */
export async function allEnded<Result>(work: readonly Promise<Result>[]): Promise<Result[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}
