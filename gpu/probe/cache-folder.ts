import { existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isLossy } from '../../engine/lossy-path.ts';
import { namesIn } from './system-files.ts';

/** The folder of this program's caches: FACTORFLOW_CACHE_DIR, or a folder in the system's cache folder. */
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
 * Creates a folder owned by this user, with its parent folders. Throws an Error if it cannot be created, or
 * if other users could put files there (see requireOwnFolder).
 */
export function makeOwnFolder(folder: string): void {
  if (isLossy(folder) && !existsSync(folder))
    throw new Error(`the name of the folder ${folder} is not UTF-8, and would be written as another name`);
  makeFolder(folder);
  requireOwnFolder(folder);
}

/**
 * Bits of a folder's mode: the group may write, others may write, and sticky (a user may only change his own
 * files there).
 */
const [GROUP_WRITES, OTHERS_WRITE, STICKY] = [0o020, 0o002, 0o1000];

/**
 * Throws an Error for a folder in which another user could put or replace files: it is a symbolic link,
 * another user owns it, other users may write to it, or one of these is true of a parent folder. On Windows
 * folders have no such modes, so every folder passes.
 */
export function requireOwnFolder(folder: string): void {
  const uid = process.getuid?.();
  if (uid === undefined) return;
  const refuse = (path: string, reason: string) => {
    throw new Error(`the folder ${path} ${reason}`);
  };
  const own = lstatSync(folder);
  if (!own.isDirectory()) refuse(folder, 'is not a folder, or is a symbolic link');
  if (own.uid !== uid) refuse(folder, `belongs to user ${own.uid}, and this is user ${uid}`);
  if ((own.mode & (GROUP_WRITES | OTHERS_WRITE)) !== 0) refuse(folder, 'can be written to by other users');
  let above = realpathSync(folder);
  while (dirname(above) !== above) {
    above = dirname(above);
    const { mode, uid: owner, gid } = lstatSync(above);
    if (owner !== uid && owner !== 0) refuse(above, `belongs to user ${owner}, and this is user ${uid}`);
    const shared = gid === 0 || gid === process.getgid?.() ? OTHERS_WRITE : GROUP_WRITES | OTHERS_WRITE;
    if ((mode & shared) !== 0 && (mode & STICKY) === 0) refuse(above, 'can be written to by other users');
  }
}

/**
 * Creates folders one by one and throws the file system's error. Node's recursive mkdir never ends if the
 * system reports a missing parent folder that does exist, as in /proc.
 */
function makeFolder(folder: string): void {
  const problem = mkdirProblem(folder);
  if (problem === undefined) return;
  if (problem.code !== 'ENOENT' || dirname(folder) === folder) throw problem;
  makeFolder(dirname(folder));
  const again = mkdirProblem(folder);
  if (again !== undefined) throw again;
}

/** Undefined if the folder now exists, whichever process made it. */
function mkdirProblem(folder: string): NodeJS.ErrnoException | undefined {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST' ? undefined : (error as NodeJS.ErrnoException);
  }
}

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
