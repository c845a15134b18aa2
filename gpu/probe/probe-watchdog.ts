/**
 * A thread that ends the probe's process after 25 seconds. It is needed if a driver hangs, which blocks the
 * main thread, and the parent process, which would end this one after 20 seconds, has itself ended.
 */
setTimeout(() => process.kill(process.pid, 'SIGKILL'), 25_000);
