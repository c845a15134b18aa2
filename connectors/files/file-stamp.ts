import { statSync } from 'node:fs';
import { DataError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import type { Message } from '../../engine/events.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { FileStamp } from '../../engine/stream/split.ts';
import { isUrl, STANDARD_STREAM } from './path-kinds.ts';

/** Parts of a context that identify a run, so that all its passes read the same versions of files. */
export type ReadingRun = Pick<ExecutionContext, 'signal'> &
  Partial<Pick<ExecutionContext, 'events' | 'metrics' | 'command'>>;

/** A file, and its version when it was opened. */
export interface StampedFile {
  readonly file: string;
  readonly stamp: FileStamp | undefined;
}

/**
 * True if the first `size` bytes of a file end with a complete row. Such a file may be growing because a
 * program appends rows.
 */
export type EndsWhole = (file: string, size: number) => boolean;

/**
 * The version of a regular file. `grows`: rows may be appended while it is read. Undefined for inputs without
 * a version: streams, devices, files on web servers, and files that do not exist.
 */
export function fileStamp(file: string, grows: boolean): FileStamp | undefined {
  if (file === STANDARD_STREAM || isUrl(file)) return undefined;
  try {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false });
    if (!found?.isFile()) return undefined;
    return {
      id: `${found.dev} ${found.ino}`,
      size: Number(found.size),
      modified: String(found.mtimeNs),
      grows,
    };
  } catch {
    return undefined;
  }
}

/**
 * True if a file still has this version, or has only grown. Throws DataError if the run has already read the
 * file and its bytes have changed since.
 */
export function isFresh(run: ReadingRun, { file, stamp }: StampedFile): boolean {
  requireStamp(file, ofRun(run).stamps.get(file));
  const change = stamp && changeOf(stamp, fileStamp(file, stamp.grows));
  if (change === 'cut' || change === 'changed') throw changedFile(file, change);
  return change === undefined || change === 'grown';
}

/** Throws DataError if a file's earlier bytes have changed; returns 'grown' if bytes were only appended. */
export function requireStamp(file: string, stamp: FileStamp | undefined): 'same' | 'grown' {
  if (stamp === undefined) return 'same';
  const now = fileStamp(file, stamp.grows);
  const change = changeOf(stamp, now);
  if (change !== undefined && change !== 'grown') throw changedFile(file, change);
  return change ?? 'same';
}

function changedFile(file: string, change: Change): DataError {
  return new DataError(`another process ${change} the file while it was read`, {
    phase: 'read',
    file,
    advice: 'Read it again',
  });
}

/** The error of a file that ends before the size it had. */
export function shorterFile(file: string, size: number, end: number): DataError {
  return new DataError(
    `another process cut the file while it was read: it had ${size} bytes, and ends after ${end}`,
    { phase: 'read', file, advice: 'Write or copy the file again' },
  );
}

type Change = 'removed' | 'replaced' | 'cut' | 'changed' | 'grown';

function changeOf(before: FileStamp, now: FileStamp | undefined): Change | undefined {
  if (now === undefined) return 'removed';
  if (now.id !== before.id) return 'replaced';
  // The kernel's virtual files have size 0, and a new time at each call.
  if (before.size === 0 || (now.size === before.size && now.modified === before.modified)) return undefined;
  if (now.size < before.size) return 'cut';
  return before.grows && now.size > before.size ? 'grown' : 'changed';
}

/** For each run: the versions of the files that it reads, and the messages that it has reported. */
const runs = new WeakMap<object, { readonly stamps: Map<string, FileStamp>; readonly texts: Set<string> }>();

function ofRun({ command, metrics }: ReadingRun) {
  const run = command ?? metrics;
  const found = (run && runs.get(run)) ?? { stamps: new Map(), texts: new Set() };
  if (run) runs.set(run, found);
  return found;
}

/**
 * The version of a file that all passes of a run read: the version at the first pass. Throws DataError if the
 * file's bytes have changed since.
 */
export function stampOfRun(
  run: ReadingRun,
  file: string,
  stamp: FileStamp | undefined,
): FileStamp | undefined {
  if (stamp === undefined) return undefined;
  const { stamps } = ofRun(run);
  const first = stamps.get(file) ?? stamp;
  if (first !== stamp) requireStamp(file, first);
  stamps.set(file, first);
  return first;
}

/**
 * Throws DataError if a file's bytes changed while it was read, or if it was opened in the middle of a row.
 * Reports a file that grew, once a run.
 */
export function requireUnchanged(
  run: ReadingRun,
  files: readonly StampedFile[],
  endsWhole?: EndsWhole,
): void {
  for (const { file, stamp } of files) {
    if (stamp === undefined || requireStamp(file, stamp) === 'same') continue;
    const read = formatBytes(stamp.size);
    if (endsWhole?.(file, stamp.size) === false)
      throw new DataError(
        `another process was writing a row at the end of the file when it was opened, after ${read}`,
        { phase: 'read', file, advice: 'Read it again once it is written' },
      );
    const text = `${file} grew while it was read: only the ${read} that it had when it was opened were read`;
    reportOnce(run, { type: 'warning', code: 'input-grew', text });
  }
}

/** Reports a message about the files of a run, once a run. */
export function reportOnce(run: ReadingRun, message: Message): void {
  const { texts } = ofRun(run);
  if (texts.has(message.text)) return;
  texts.add(message.text);
  run.events?.(message);
}
