/**
 * Milliseconds of a monotonic clock that all threads of this process share; those of performance.now() begin
 * anew in each thread.
 */
export function sharedClock(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return 1000 * seconds + nanoseconds / 1e6;
}
