import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { cacheFolder, makeOwnFolder } from '../gpu/probe/cache-folder.ts';

/**
 * Keeps the compiled code of modules that this process and its threads load from now on for later runs, below
 * the cache folder; takes that of earlier ones. Without a folder nothing is kept.
 */
export function keepCompiled(): void {
  try {
    const folder = join(cacheFolder(), 'compiled');
    makeOwnFolder(folder);
    enableCompileCache(folder);
    // Threads look here.
    process.env.NODE_COMPILE_CACHE ??= folder;
  } catch {}
}
