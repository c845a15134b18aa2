import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { cacheFolder, makeOwnFolder } from '../gpu/probe/cache-folder.ts';

/**
 * From now on stores the compiled code of modules that this process and its threads load in the cache folder,
 * and reuses the code of earlier runs. Without a folder nothing is stored.
 */
export function keepCompiled(): void {
  try {
    const folder = join(cacheFolder(), 'compiled');
    makeOwnFolder(folder);
    enableCompileCache(folder);
    // Threads read this variable.
    process.env.NODE_COMPILE_CACHE ??= folder;
  } catch {}
}
