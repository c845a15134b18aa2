import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { isLossy } from '../../engine/lossy-path.ts';
import { CapacityError, DataError, FactorFlowError, UsageError } from '../../engine/errors.ts';

/** Summary of the error for a full disk. */
export const DISK_FULL = 'the disk is full';

/**
 * The `code` of a system error ("ENOENT", ...); undefined for other errors, also for Node's own "ERR_...".
 */
export function errorCode(error: unknown): string | undefined {
  if (
    error instanceof FactorFlowError ||
    !(error instanceof Error && 'code' in error && typeof error.code === 'string')
  )
    return undefined;
  return error.code.startsWith('ERR_') ? undefined : error.code;
}

/** The message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Error for a folder that cannot be made or written to. `name`: the option and its path. */
export function folderRefused(name: string, advice: string, error: unknown): UsageError {
  const code = errorCode(error) ?? messageOf(error);
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: parentExists(error) ? 'takes no new folders' : 'does not exist',
    ENOTDIR: 'is not a folder',
    EEXIST: 'is not a folder',
    EROFS: 'cannot be written to: the file system is read-only',
  };
  return new UsageError(`${name} ${reasons[code] ?? `cannot be written to (${code})`}`, {
    advice,
    cause: error,
  });
}

/** True for a path that could not be made in an existing folder, as in /proc. */
function parentExists(error: unknown): boolean {
  const path = error instanceof Error && 'path' in error ? error.path : undefined;
  return typeof path === 'string' && existsSync(dirname(path));
}

/** Phases that only read a file. */
const inputPhases = ['read', 'load', 'resume'];

/** Faults by the codes of systems, in words. A limit is one of the machine's capacity. */
const faults: Readonly<
  Record<string, { readonly summary: string; readonly advice?: string; readonly isLimit?: true }>
> = {
  EISDIR: { summary: 'this is a folder where a file was expected' },
  EROFS: { summary: 'not writable: the file system is read-only', advice: 'Choose another output' },
  EFBIG: {
    summary: 'the file has the largest size that the system allows',
    advice: 'Raise the limit (ulimit -f), or choose another output',
    isLimit: true,
  },
  EMFILE: { summary: 'too many open files', advice: 'Raise the limit (ulimit -n)', isLimit: true },
};

/** Turns a file system's error into one that names the problem, the file and a remedy. */
export function fileProblem(error: unknown, phase: string, file: string): Error {
  if (error instanceof FactorFlowError) return error;
  const details = { phase, file, cause: error };
  const code = errorCode(error);
  if (code === undefined) return unexplained(error, details);
  if (code === 'ENOENT' || code === 'ENOTDIR') return missing(details);
  if (code === 'EACCES' || code === 'EPERM') return denied(details);
  if (code === 'ENOSPC' || code === 'EDQUOT') return noRoom(details);
  if (code === 'EIO' || code === 'ESTALE')
    return new DataError(`the disk or its server reports an error (${code})`, {
      ...details,
      advice: 'Check the disk, the mount and the system log',
    });
  // Drops the path from "ENAMETOOLONG: name too long, open '<path>'", since it may be the name of a temporary
  // file; `details` has the path that the user knows.
  const known = faults[code === 'ENFILE' ? 'EMFILE' : code] ?? { summary: messageOf(error).split(', ')[0] };
  const { summary, advice, isLimit } = known;
  return new (isLimit ? CapacityError : DataError)(summary, { ...details, advice });
}

function noRoom(details: Details): CapacityError {
  // While reading, a full disk is not the output's: a mounted store may copy files to a local disk when they
  // are read.
  if (inputPhases.includes(details.phase))
    return new CapacityError('the system has no room to read the file', {
      ...details,
      advice: 'Free some space where the mount keeps its copies, or copy the file to a disk first',
    });
  return new CapacityError(DISK_FULL, {
    ...details,
    advice: 'Free some space or choose another output; nothing was left behind',
  });
}

/** The kinds of access that Node's permission model refuses, with the flag that allows each. */
const permissionFlags: Readonly<Record<string, string>> = {
  FileSystemRead: '--allow-fs-read',
  FileSystemWrite: '--allow-fs-write',
  WorkerThreads: '--allow-worker',
  ChildProcess: '--allow-child-process',
  Inet: '--allow-net',
  Addon: '--allow-addons',
};

/** The error for what Node's permission model refuses; undefined for other errors. */
export function permissionProblem(error: unknown): UsageError | undefined {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_ACCESS_DENIED')) return undefined;
  const permission = 'permission' in error ? String(error.permission) : '';
  const resource = 'resource' in error && error.resource ? String(error.resource) : undefined;
  const flag = permissionFlags[permission] ?? 'the flag that allows it';
  const isFile = permission.startsWith('FileSystem');
  return new UsageError(`Node runs with --permission and refuses the access ${permission}`, {
    file: isFile ? resource : undefined,
    advice: `Add ${flag}${isFile ? '=PATH' : ''} to Node's flags; docs/bundlers.md has all that are needed`,
    cause: error,
  });
}

function unexplained(error: unknown, details: Details): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const refused = permissionProblem(error);
  if (refused !== undefined) return refused;
  // Node throws this error, without details, if a file stream has tried a write several times in vain.
  if (!('code' in error) || error.code !== 'ERR_SYSTEM_ERROR') return error;
  return new DataError('the system takes no more bytes (EAGAIN)', {
    ...details,
    advice: 'Check the disk or its server, and try again',
  });
}

interface Details {
  readonly phase: string;
  readonly file: string;
  readonly cause?: unknown;
}

function denied(details: Details): DataError {
  return details.phase === 'read'
    ? new DataError('not readable: permission denied', {
        ...details,
        advice: "Check the file's permissions",
      })
    : new DataError('not writable: permission denied', {
        ...details,
        advice: "Choose another output, or check the folder's permissions",
      });
}

/** The error of a path that does not exist. */
export function missing(details: Details): DataError {
  return isLossy(details.file)
    ? new DataError('no such file or folder: the name is not UTF-8', {
        ...details,
        advice: 'Rename the file, or name it by a link whose name is UTF-8',
      })
    : new DataError('no such file or folder', { ...details, advice: 'Check the path' });
}
