/**
 * The first file of each thread of a pool: imports the worker's module, whose default export runs requests.
 *
 * Piscina requires a pool's file. If that were the ES module itself, Node 22.12 would abort the process when
 * a thread ends while it loads: its `require` asks an unlinked module whether it is asynchronous
 * (`v8::Module::IsGraphAsync must be used on an instantiated module`). An import does not.
 */
module.exports = {
  __esModule: true,
  default: (async (): Promise<unknown> => {
    const { parentPort, workerData } = require('node:worker_threads') as WorkerThreads;
    // Piscina passes [its own data, ours] when ports are in use, and only ours otherwise.
    const { module: file } = (Array.isArray(workerData) ? workerData.at(-1) : workerData) as {
      readonly module: string;
    };
    try {
      const { default: run } = (await import(file)) as { readonly default: unknown };
      // The pool sends requests from now on.
      parentPort.postMessage('loaded', []);
      return run;
    } catch (error) {
      // Piscina ignores a failure of its `require`, so it ends the thread from here.
      setImmediate(() => {
        throw error;
      });
      return await new Promise(() => {});
    }
  })(),
};

interface WorkerThreads {
  readonly parentPort: { postMessage(message: string, moved: never[]): void };
  readonly workerData: unknown;
}
