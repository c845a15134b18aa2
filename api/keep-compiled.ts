import nodeModule from 'node:module';
import { join } from 'node:path';
import { cacheFolder, makeOwnFolder } from '../gpu/probe/cache-folder.ts';

/**
 * From now on, the compiled code of modules that this process and its threads load is stored in the cache
 * folder, and the code of earlier runs is reused. Does nothing if the folder cannot be used.
 */
export function keepCompiled(): void {
  try {
    const folder = join(cacheFolder(), 'compiled');
    makeOwnFolder(folder);
    // Deno has no such cache.
    nodeModule.enableCompileCache?.(folder);
    // Threads read this variable.
    process.env.NODE_COMPILE_CACHE ??= folder;
  } catch {}
}
