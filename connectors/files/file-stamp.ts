import { type BigIntStats, statSync } from 'node:fs';
import { DataError } from '../../engine/errors.ts';
import { isUrl, STANDARD_STREAM } from './path-kinds.ts';

/**
 * Tells a file from another that takes its place: its plan was made for the first. `whole`: from a later
 * version of itself too, which for text may be more lines at its end. Empty for what lies on no disk.
 *
 */
export function fileStamp(file: string, whole: boolean): string {
  if (file === STANDARD_STREAM || isUrl(file)) return '';
  const found = statOf(file);
  if (found === undefined) return 'none';
  return [
    whole ? 'whole' : 'named',
    found.dev,
    found.ino,
    ...(whole ? [found.size, found.mtimeNs] : []),
  ].join(' ');
}

function statOf(file: string): BigIntStats | undefined {
  try {
    return statSync(file, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Throws DataError where a file is no longer the one of the stamp. */
export function requireStamp(file: string, stamp: string | undefined): void {
  if (!stamp || fileStamp(file, stamp.startsWith('whole')) === stamp) return;
  throw new DataError('another process replaced the file while it was read', {
    phase: 'read',
    file,
    advice: 'Read it again',
  });
}
