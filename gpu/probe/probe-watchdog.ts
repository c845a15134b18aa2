/**
 * A thread that ends the probe's process after 25 seconds: a driver that hangs blocks the main thread, and
 * the parent may have ended.
 */
setTimeout(() => process.kill(process.pid, 'SIGKILL'), 25_000);
