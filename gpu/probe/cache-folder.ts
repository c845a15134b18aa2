import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

/** FACTORFLOW_CACHE_DIR, or factorflow's folder among the system's caches. */
export function cacheFolder(
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
  home: string = homedir(),
): string {
  if (env.FACTORFLOW_CACHE_DIR) return env.FACTORFLOW_CACHE_DIR;
  if (platform === 'win32')
    return join(env.LOCALAPPDATA || join(home, 'AppData', 'Local'), 'factorflow', 'Cache');
  if (platform === 'darwin') return join(home, 'Library', 'Caches', 'factorflow');
  return join(env.XDG_CACHE_HOME || join(home, '.cache'), 'factorflow');
}

/**
 * Makes a folder, with those that it lies in. Throws the error of the file system: Node's own recursive way
 * never ends where the system says that no folder is there to make it in, though there is one, as in /proc.
 *
 */
export function makeFolder(folder: string): void {
  const problem = mkdirProblem(folder);
  if (problem === undefined) return;
  if (problem.code !== 'ENOENT' || dirname(folder) === folder) throw problem;
  makeFolder(dirname(folder));
  const again = mkdirProblem(folder);
  if (again !== undefined) throw again;
}

/** Undefined for a folder that is there now, whichever process made it. */
function mkdirProblem(folder: string): NodeJS.ErrnoException | undefined {
  try {
    mkdirSync(folder);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST' ? undefined : (error as NodeJS.ErrnoException);
  }
}
