import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { workerData } from 'node:worker_threads';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { ModuleFunction } from '../../operators/dataflow/map-batches.ts';

/** `import.meta.url` in pieces, since a bundler would replace the whole expression inside this message. */
const OWN_URL = ['import', 'meta', 'url'].join('.');

/** Throws UsageError unless threads can import the module without running the main program again. */
export function checkModule(given: ModuleFunction, method = 'mapBatches'): void {
  if (typeof given !== 'object' || given === null)
    throw new UsageError(
      `${method} takes ${method === 'mapRows' ? '' : 'a function, or '}{ module, name }, got ${shown(given)}`,
    );
  const { module, name } = given;
  if (typeof module !== 'string' || !/^(file|data):/.test(module))
    throw new UsageError(`${method} takes a module's URL, got ${shown(module)}`, {
      advice: `Pass the URL of the module that exports it: { module: ${OWN_URL}, name: 'clean' }`,
    });
  if (typeof name !== 'string' || name === '')
    throw new UsageError(`${method} takes the name of an exported function, got ${shown(name)}`);
  if (!module.startsWith('file:')) return;
  const [path, entry] = [fileURLToPath(module), process.argv[1]].map(realPath);
  if (path !== undefined && (path === entry || path === realPath(fileURLToPath(import.meta.url))))
    throw new UsageError(`${method}: ${module} is the program itself, which each thread would run again`, {
      advice: 'Put the function into a module of its own, which a bundler leaves as a file',
    });
}

/**
 * Throws UsageError if called in a thread of a session. A module that creates a session when it is imported
 * would otherwise run again in each thread, without end.
 */
export function refuseThread(): void {
  // A session marks its threads by this object in their data, alone or as the last of a list.
  const data: unknown = Array.isArray(workerData) ? workerData.at(-1) : workerData;
  if (typeof data === 'object' && data !== null && 'ofSession' in data)
    throw new UsageError('a thread of a session makes no session of its own', {
      advice: 'Put the function of mapBatches into a module that neither is nor imports a program',
    });
}

function realPath(path: string | undefined): string | undefined {
  try {
    return path && realpathSync(path);
  } catch {
    return undefined;
  }
}
