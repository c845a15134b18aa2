import { homedir } from 'node:os';
import { join } from 'node:path';

/** FACTORFLOW_CACHE_DIR, or factorflow's folder among the system's caches. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>> = process.env, platform: NodeJS.Platform = process.platform, home: string = homedir()): string {
  if (env.FACTORFLOW_CACHE_DIR) return env.FACTORFLOW_CACHE_DIR;
  if (platform === 'win32') return join(env.LOCALAPPDATA || join(home, 'AppData', 'Local'), 'factorflow', 'Cache');
  if (platform === 'darwin') return join(home, 'Library', 'Caches', 'factorflow');
  return join(env.XDG_CACHE_HOME || join(home, '.cache'), 'factorflow');
}
