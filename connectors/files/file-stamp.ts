import { stat } from 'node:fs/promises';
import { DataError } from '../../engine/errors.ts';
import { isUrl, STANDARD_STREAM } from './path-kinds.ts';

/**
 * Tells a file from another that takes its place: its plan was made for the first. `whole`: from a later version of itself too, which for text may be
 * more lines at its end. Empty for what lies on no disk.
 */
export async function fileStamp(file: string, whole: boolean): Promise<string> {
  if (file === STANDARD_STREAM || isUrl(file)) return '';
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  if (found === undefined) return 'none';
  return [whole ? 'whole' : 'named', found.dev, found.ino, ...(whole ? [found.size, found.mtimeNs] : [])].join(' ');
}

/** Throws DataError where a file is no longer the one of the stamp. */
export async function requireStamp(file: string, stamp: string | undefined): Promise<void> {
  if (!stamp || (await fileStamp(file, stamp.startsWith('whole'))) === stamp) return;
  throw new DataError('another process replaced the file while it was read', { phase: 'read', file, advice: 'Read it again' });
}
