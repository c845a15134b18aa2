/**
 * Milliseconds of a monotonic clock shared by all threads of this process; performance.now() has a different
 * zero in each thread.
 */
export function sharedClock(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return 1000 * seconds + nanoseconds / 1e6;
}
