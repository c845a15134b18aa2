/**
 * Milliseconds of a monotonic clock shared by all threads of this process; performance.now() has a different
 * zero in each thread. In a page it is performance.now(), since only the page's own thread reports times.
 */
export function sharedClock(): number {
  if (typeof process === 'undefined') return performance.now();
  const [seconds, nanoseconds] = process.hrtime();
  return 1000 * seconds + nanoseconds / 1e6;
}
