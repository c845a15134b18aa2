/**
 * A thread of the probe that ends its process after a while: a driver that hangs holds the main thread, and whoever asked may be gone.
 */
setTimeout(() => process.kill(process.pid, 'SIGKILL'), 25_000);
