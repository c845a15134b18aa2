import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../../engine/errors.ts';
import type { ModuleFunction } from '../../operators/dataflow/map-batches.ts';
import { shown } from '../check-options.ts';

/** In one piece it would be replaced where the program is bundled. */
const OWN_URL = ['import', 'meta', 'url'].join('.');

/** Throws UsageError unless threads can import the module without running the main program again. */
export function checkModule({ module, name }: ModuleFunction): void {
  if (typeof module !== 'string' || !/^(file|data):/.test(module))
    throw new UsageError(`mapBatches takes a module's URL, got ${shown(module)}`, {
      advice: `Pass the URL of the module that exports it: { module: ${OWN_URL}, name: 'clean' }`,
    });
  if (typeof name !== 'string' || name === '')
    throw new UsageError(`mapBatches takes the name of an exported function, got ${shown(name)}`);
  if (!module.startsWith('file:')) return;
  const [path, entry] = [fileURLToPath(module), process.argv[1]].map(realPath);
  if (path !== undefined && (path === entry || path === realPath(fileURLToPath(import.meta.url))))
    throw new UsageError(`mapBatches: ${module} is the program itself, which each thread would run again`, {
      advice: 'Put the function into a module of its own, which a bundler leaves as a file',
    });
}

function realPath(path: string | undefined): string | undefined {
  try {
    return path && realpathSync(path);
  } catch {
    return undefined;
  }
}
