import { join } from 'node:path';
import { cacheFolder, makeOwnFolder } from './cache-folder.ts';
import { namesIn } from './system-files.ts';

/** NVIDIA's variables: a cache, its folder. */
const [CACHE, FOLDER] = ['__GL_SHADER_DISK_CACHE', '__GL_SHADER_DISK_CACHE_PATH'] as const;

/**
 * Gives NVIDIA's driver on Linux a folder for the kernels that it has compiled, among this program's caches:
 * where a home folder does not serve, as for root, it keeps none, and each run compiles again (up to 0.5 s a
 * kernel of rank 64, 1.8 s of rank 200, beside busy threads). The driver itself limits the folder's size. A
 * variable that the user has set stays as it is, and without a folder the driver goes its own way. Acts on
 * drivers that this process loads later, from its main thread alone: a worker has a copy of the environment.
 *
 */
export function keepDriverCache(
  env: Record<string, string | undefined> = process.env,
  devices: readonly string[] = namesIn('/dev'),
  folder = join(cacheFolder(), 'driver'),
): void {
  if (
    env[CACHE] !== undefined ||
    env[FOLDER] !== undefined ||
    !devices.some((name) => /^nvidia\d/.test(name))
  )
    return;
  try {
    makeOwnFolder(folder);
  } catch {
    return;
  }
  env[CACHE] = '1';
  env[FOLDER] = folder;
}
