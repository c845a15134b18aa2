import { join } from 'node:path';
import { cacheFolder, makeOwnFolder } from './cache-folder.ts';
import { namesIn } from './system-files.ts';

/** NVIDIA's environment variables: one switches the cache on or off, the other names its folder. */
const [CACHE, FOLDER] = ['__GL_SHADER_DISK_CACHE', '__GL_SHADER_DISK_CACHE_PATH'] as const;

/**
 * Sets the folder in which NVIDIA's driver on Linux caches compiled kernels to one of this program's cache
 * folders. Without a usable home folder, as for root, the driver caches nothing, and each run compiles again
 * (up to 0.5 s a kernel at rank 64, 1.8 s at rank 200, with busy threads). The driver itself limits the
 * folder's size.
 *
 * Variables that the user has set are kept. If the folder cannot be created, the driver's default applies.
 * Call this on the main thread before the driver is loaded: a worker only has a copy of the environment.
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
